package json_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// fill sets every field of *v, of what it points to and of the elements of its lists,
// to something that is not zero.
func fill(t *testing.T, v any) {
	t.Helper()
	fillValue(t, reflect.ValueOf(v).Elem())
}

func fillValue(t *testing.T, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *time.Time:
		*x = time.Date(2026, 11, 30, 7, 3, 35, 0, time.UTC)
		return
	case *json.RawMessage:
		*x = json.RawMessage(`{"start":{}}`)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillValue(t, v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			fillValue(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(t, v.Field(i))
		}
	case reflect.String:
		v.SetString("word")
		if e := enums[v.Type().Name()]; e != nil {
			v.SetString(e[len(e)-1])
		}
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	default:
		t.Fatalf("cannot fill %s", v.Type())
	}
}
