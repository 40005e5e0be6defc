package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// version is a release in the two forms that Windows has: words and four numbers.
type version struct {
	text    string
	numbers [4]uint16 // major, minor, patch, commits since that release
	release bool      // exactly a tagged release
}

// dotted spells the four numbers, as a manifest wants them.
func (v version) dotted() string {
	return fmt.Sprintf("%d.%d.%d.%d", v.numbers[0], v.numbers[1], v.numbers[2], v.numbers[3])
}

// parseVersion reads what `git describe --tags --always --dirty` says: v1.2.3,
// v1.2.3-4-gabc-dirty, or a bare commit where there is no tag yet (0.0.0.0 then).
func parseVersion(text string) (version, error) {
	if text == "" {
		return version{}, errors.New("-version is missing")
	}
	v := version{text: text}
	triple, rest, more := strings.Cut(strings.TrimPrefix(text, "v"), "-")
	parts := strings.Split(triple, ".")
	if len(parts) != 3 {
		return v, nil
	}
	if more {
		if n, _, found := strings.Cut(rest, "-g"); found {
			parts = append(parts, n)
		}
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 16)
		if errors.Is(err, strconv.ErrRange) {
			return version{}, fmt.Errorf("version %q: %s does not fit the 16 bits that Windows has for it", text, p)
		}
		if err != nil {
			return version{text: text}, nil
		}
		v.numbers[i] = uint16(n)
	}
	v.release = !more
	return v, nil
}

// The strings of the version block, in the order in which they are written.
func (v version) strings() [][2]string {
	return [][2]string{
		{"CompanyName", "fullbore-net"},
		{"FileDescription", "fullbore: how fast is this network path, and what holds it back?"},
		{"FileVersion", v.text},
		{"InternalName", "fullbore"},
		{"LegalCopyright", "Apache License 2.0"},
		{"OriginalFilename", "fullbore.exe"},
		{"ProductName", "fullbore"},
		{"ProductVersion", v.text},
	}
}

// Of VS_FIXEDFILEINFO (verrsrc.h).
const (
	fixedSignature   = 0xFEEF04BD
	fixedStructure   = 0x00010000
	flagPrerelease   = 0x2
	flagsMask        = 0x3F
	systemNTWindows  = 0x00040004
	fileTypeProgram  = 0x1
	languageEnglish  = 0x0409
	codePageUnicode  = 0x04B0
	translationWords = "040904B0"
)

// versionInfo is a VS_VERSIONINFO resource: the fixed part and one table of strings.
func versionInfo(v version) []byte {
	high := uint32(v.numbers[0])<<16 | uint32(v.numbers[1])
	low := uint32(v.numbers[2])<<16 | uint32(v.numbers[3])
	flags := uint32(0)
	if !v.release {
		flags = flagPrerelease
	}
	var fixed bytes.Buffer
	for _, n := range []uint32{fixedSignature, fixedStructure, high, low, high, low, flagsMask, flags, systemNTWindows, fileTypeProgram, 0, 0, 0} {
		_ = binary.Write(&fixed, binary.LittleEndian, n) // a Buffer takes everything
	}
	var table [][]byte
	for _, s := range v.strings() {
		value := append(utf16.Encode([]rune(s[1])), 0)
		table = append(table, block(s[0], true, len(value), words(value)))
	}
	translation := []byte{languageEnglish & 0xFF, languageEnglish >> 8, codePageUnicode & 0xFF, codePageUnicode >> 8}
	return block("VS_VERSION_INFO", false, fixed.Len(), fixed.Bytes(),
		block("StringFileInfo", true, 0, nil, block(translationWords, true, 0, nil, table...)),
		block("VarFileInfo", true, 0, nil, block("Translation", false, len(translation), translation)))
}

// block is the shape that all parts of a version resource share: its length, the length
// of its value (in characters where that is text), whether it is text, its name, its
// value and what is inside it; values and inner blocks begin at multiples of four.
func block(key string, text bool, valueLength int, value []byte, inside ...[]byte) []byte {
	b := make([]byte, 6)
	b = append(b, words(append(utf16.Encode([]rune(key)), 0))...)
	b = append(align(b), value...)
	for _, in := range inside {
		b = append(align(b), in...)
	}
	binary.LittleEndian.PutUint16(b[0:], uint16(len(b)))
	binary.LittleEndian.PutUint16(b[2:], uint16(valueLength))
	if text {
		b[4] = 1
	}
	return b
}

func align(b []byte) []byte {
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func words(w []uint16) []byte {
	b := make([]byte, 0, 2*len(w))
	for _, c := range w {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

// manifest is the program's manifest. Only Windows 10's number is named (11 and the
// servers since 2016 have the same): Go's own runtime needs that one.
func manifest(v version) string {
	return `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<assembly xmlns="urn:schemas-microsoft-com:asm.v1" manifestVersion="1.0">
  <assemblyIdentity type="win32" name="fullbore" version="` + v.dotted() + `"/>
  <description>fullbore</description>
  <trustInfo xmlns="urn:schemas-microsoft-com:asm.v3">
    <security>
      <requestedPrivileges>
        <requestedExecutionLevel level="asInvoker" uiAccess="false"/>
      </requestedPrivileges>
    </security>
  </trustInfo>
  <compatibility xmlns="urn:schemas-microsoft-com:compatibility.v1">
    <application>
      <supportedOS Id="{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}"/>
    </application>
  </compatibility>
  <application xmlns="urn:schemas-microsoft-com:asm.v3">
    <windowsSettings>
      <longPathAware xmlns="http://schemas.microsoft.com/SMI/2016/WindowsSettings">true</longPathAware>
      <activeCodePage xmlns="http://schemas.microsoft.com/SMI/2019/WindowsSettings">UTF-8</activeCodePage>
    </windowsSettings>
  </application>
</assembly>
`
}
