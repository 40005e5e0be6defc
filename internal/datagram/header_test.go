package datagram

import (
	"bytes"
	"testing"
)

func TestHeader(t *testing.T) {
	b := bytes.Repeat([]byte{0xAA}, 40)
	PutHeader(b, false, 0x1_0000_0002, 1234567_890_123_456)
	want := []byte{0, 0x12, 0xD6, 0x87, 0, 0x0D, 0x95, 0x0B, 0, 0, 0, 2, 0xAA}
	if !bytes.Equal(b[:13], want) {
		t.Errorf("32 bits: % x, want % x", b[:13], want)
	}
	if seq, sent := Header(b, false); seq != 2 || sent != 1234567_890_123_000 {
		t.Errorf("read back %d, %d", seq, sent)
	}
	PutHeader(b, true, 0x1_0000_0002, 1234567_890_123_456)
	want = append(want[:8:8], 0, 0, 0, 1, 0, 0, 0, 2, 0xAA)
	if !bytes.Equal(b[:17], want) {
		t.Errorf("64 bits: % x, want % x", b[:17], want)
	}
	if seq, _ := Header(b, true); seq != 0x1_0000_0002 {
		t.Errorf("read back %d", seq)
	}
	PutExt(b, 1234567_890_123_456, 0x0102030405060708)
	if sent, nonce := Ext(b); sent != 1234567_890_123_456 || nonce != 0x0102030405060708 {
		t.Errorf("extension %d, %#x", sent, nonce)
	}
	if seq, _ := Header(b, true); seq != 0x1_0000_0002 || b[32] != 0xAA {
		t.Error("the extension overwrote its neighbours")
	}
}

func TestPlausible(t *testing.T) {
	b := make([]byte, 16)
	PutHeader(b, true, 1, 5e9+999_999_999)
	if !Plausible(b, true) || Plausible(b[:15], true) || !Plausible(b[:12], false) || Plausible(b[:11], false) {
		t.Error("by length")
	}
	if Plausible([]byte("9876abcdefghijklmnopqrstuvwxyz234567abcdefghi"), false) {
		t.Error("a greeting passes for a header")
	}
}

func TestHeaderAllocates(t *testing.T) {
	b := make([]byte, 64)
	got := testing.AllocsPerRun(100, func() {
		PutHeader(b, true, 7, 9)
		PutExt(b, 7, 9)
		Header(b, true)
		Ext(b)
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// FuzzHeader: what was written is read back, up to the microsecond, and any bytes can be read.
func FuzzHeader(f *testing.F) {
	f.Add([]byte("9876abcdefghijklmnopqrstuvwxyz234567abcdefghi"), true, uint64(1), int64(1))
	f.Add(make([]byte, 32), false, uint64(1<<32), int64(1<<40))
	f.Fuzz(func(t *testing.T, data []byte, wide bool, seq uint64, sent int64) {
		if Plausible(data, wide) {
			s, at := Header(data, wide)
			again := bytes.Clone(data)
			PutHeader(again, wide, s, at)
			if !bytes.Equal(again, data) {
				t.Fatalf("% x became % x", data, again)
			}
		}
		if len(data) >= ExtSize {
			at, nonce := Ext(data)
			again := bytes.Clone(data)
			PutExt(again, at, nonce)
			if !bytes.Equal(again, data) {
				t.Fatalf("% x became % x", data, again)
			}
		}
		if sent < 0 || sent/1e9 > 0xFFFFFFFF {
			return
		}
		b := make([]byte, ExtSize)
		PutHeader(b, wide, seq, sent)
		s, at := Header(b, wide)
		if !wide {
			seq &= 0xFFFFFFFF
		}
		if s != seq || at != sent-sent%1000 || !Plausible(b, wide) {
			t.Fatalf("%d at %d came back as %d at %d", seq, sent, s, at)
		}
	})
}
