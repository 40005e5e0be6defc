package main

import (
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

var errShort = errors.New("cut short")

// readFile returns the resources of a linked program.
func readFile(path string) ([]resource, error) {
	f, err := pe.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // read only
	header, ok := f.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		return nil, errors.New("not a 64-bit program")
	}
	where := header.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_RESOURCE]
	for _, s := range f.Sections {
		if where.Size > 0 && s.VirtualAddress == where.VirtualAddress {
			data, err := s.Data()
			if err != nil {
				return nil, err
			}
			return readTree(data, s.VirtualAddress)
		}
	}
	return nil, errors.New("no resources in it")
}

// readTree walks kind → id → language. The leaves name addresses in memory, of which
// the section begins at base.
func readTree(section []byte, base uint32) ([]resource, error) {
	var all []resource
	var walk func(at uint32, path []uint32) error
	walk = func(at uint32, path []uint32) error {
		if uint64(at)+directorySize > uint64(len(section)) {
			return errShort
		}
		n := int(binary.LittleEndian.Uint16(section[at+12:])) + int(binary.LittleEndian.Uint16(section[at+14:]))
		for i := range n {
			e := uint64(at) + directorySize + uint64(i)*entrySize
			if e+entrySize > uint64(len(section)) {
				return errShort
			}
			id, to := binary.LittleEndian.Uint32(section[e:]), binary.LittleEndian.Uint32(section[e+4:])
			inner := append(path[:len(path):len(path)], id)
			if len(inner) < 3 {
				if to&subdirectory == 0 {
					return fmt.Errorf("resource %v: no directory below it", inner)
				}
				if err := walk(to&^subdirectory, inner); err != nil {
					return err
				}
				continue
			}
			if uint64(to)+leafSize > uint64(len(section)) {
				return errShort
			}
			from := uint64(binary.LittleEndian.Uint32(section[to:])) - uint64(base)
			size := uint64(binary.LittleEndian.Uint32(section[to+4:]))
			if from > uint64(len(section)) || size > uint64(len(section))-from {
				return errShort
			}
			all = append(all, resource{kind: inner[0], id: inner[1], data: section[from : from+size]})
		}
		return nil
	}
	err := walk(0, nil)
	return all, err
}

// readVersionInfo returns the four numbers and the strings of a VS_VERSIONINFO.
func readVersionInfo(b []byte) (fixed [4]uint16, words [][2]string, err error) {
	root, err := readBlock(b)
	if err != nil {
		return fixed, nil, err
	}
	if root.key != "VS_VERSION_INFO" || len(root.value) < 16 || binary.LittleEndian.Uint32(root.value) != fixedSignature {
		return fixed, nil, errors.New("no VS_FIXEDFILEINFO")
	}
	for i := range fixed {
		fixed[i] = binary.LittleEndian.Uint16(root.value[8+[...]int{2, 0, 6, 4}[i]:])
	}
	err = root.each(func(info versionBlock) error {
		if info.key != "StringFileInfo" {
			return nil
		}
		return info.each(func(table versionBlock) error {
			return table.each(func(s versionBlock) error {
				words = append(words, [2]string{s.key, text(s.value)})
				return nil
			})
		})
	})
	return fixed, words, err
}

// versionBlock is a block taken apart.
type versionBlock struct {
	key    string
	value  []byte
	inside []byte
}

func readBlock(b []byte) (versionBlock, error) {
	if len(b) < 6 {
		return versionBlock{}, errShort
	}
	length, size := int(binary.LittleEndian.Uint16(b)), int(binary.LittleEndian.Uint16(b[2:]))
	if b[4] == 1 {
		size *= 2
	}
	if length < 6 || length > len(b) {
		return versionBlock{}, errShort
	}
	b = b[:length]
	at := 6
	for ; ; at += 2 {
		if at+2 > length {
			return versionBlock{}, errShort
		}
		if b[at] == 0 && b[at+1] == 0 {
			break
		}
	}
	key := text(b[6:at])
	at = min((at+2+3)&^3, length)
	if size > length-at {
		return versionBlock{}, errShort
	}
	return versionBlock{key: key, value: b[at : at+size], inside: b[min((at+size+3)&^3, length):]}, nil
}

// each calls do for each block inside v.
func (v versionBlock) each(do func(versionBlock) error) error {
	for in := v.inside; len(in) > 0; {
		b, err := readBlock(in)
		if err != nil {
			return err
		}
		if err := do(b); err != nil {
			return err
		}
		in = in[min((int(binary.LittleEndian.Uint16(in))+3)&^3, len(in)):]
	}
	return nil
}

// text decodes UTF-16 up to a closing zero.
func text(b []byte) string {
	var w []uint16
	for i := 0; i+1 < len(b); i += 2 {
		c := binary.LittleEndian.Uint16(b[i:])
		if c == 0 {
			break
		}
		w = append(w, c)
	}
	return string(utf16.Decode(w))
}
