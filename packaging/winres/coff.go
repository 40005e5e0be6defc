package main

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"fmt"
	"sort"
)

// The kinds of resource used here (winuser.h).
const (
	rtVersion  = 16
	rtManifest = 24
)

// resource is one leaf of the tree kind → id → language, all in English.
type resource struct {
	kind, id uint32
	data     []byte
}

// machines by GOARCH, each with the relocation "address relative to the image's base,
// 32 bits" (PE format, COFF relocations): IMAGE_REL_AMD64_ADDR32NB, IMAGE_REL_ARM64_ADDR32NB.
var machines = map[string]struct{ id, relocation uint16 }{
	"amd64": {pe.IMAGE_FILE_MACHINE_AMD64, 3},
	"arm64": {pe.IMAGE_FILE_MACHINE_ARM64, 2},
}

const (
	directorySize    = 16
	entrySize        = 8
	leafSize         = 16
	subdirectory     = 1 << 31 // this entry leads to a directory
	fileHeaderSize   = 20
	sectionSize      = 40
	relocationSize   = 10
	resourceSection  = ".rsrc"
	classStatic      = 3
	sectionReadsData = pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ
)

// coff is an object file with one section, .rsrc. The offsets of the leaves' data in it
// are relative to the section; a relocation for each makes the linker add where the
// section comes to lie.
func coff(arch string, all []resource) ([]byte, error) {
	m, ok := machines[arch]
	if !ok {
		return nil, fmt.Errorf("architecture %q: only amd64 and arm64", arch)
	}
	section, relocations := tree(all)
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) } // a Buffer takes everything
	dataAt := uint32(fileHeaderSize + sectionSize)
	relocationsAt := dataAt + uint32(len(section))
	put(pe.FileHeader{
		Machine: m.id, NumberOfSections: 1, NumberOfSymbols: 1,
		PointerToSymbolTable: relocationsAt + uint32(len(relocations)*relocationSize),
	})
	header := pe.SectionHeader32{
		SizeOfRawData: uint32(len(section)), PointerToRawData: dataAt,
		PointerToRelocations: relocationsAt, NumberOfRelocations: uint16(len(relocations)),
		Characteristics: sectionReadsData,
	}
	copy(header.Name[:], resourceSection)
	put(header)
	b.Write(section)
	for _, at := range relocations {
		put(pe.Reloc{VirtualAddress: at, SymbolTableIndex: 0, Type: m.relocation})
	}
	symbol := pe.COFFSymbol{SectionNumber: 1, StorageClass: classStatic}
	copy(symbol.Name[:], resourceSection)
	put(symbol)
	put(uint32(4)) // the table of strings: only its own length
	return b.Bytes(), nil
}

// tree is the section's bytes: the three levels of directories, the leaves, the data; and
// the places of the leaves' addresses.
func tree(all []resource) (section []byte, relocations []uint32) {
	all = append([]resource(nil), all...)
	sort.Slice(all, func(i, j int) bool { // the loader searches by halves
		return all[i].kind < all[j].kind || all[i].kind == all[j].kind && all[i].id < all[j].id
	})
	kinds := map[uint32][]resource{}
	var order []uint32
	for _, r := range all {
		if kinds[r.kind] == nil {
			order = append(order, r.kind)
		}
		kinds[r.kind] = append(kinds[r.kind], r)
	}
	directory := func(entries int) int { return directorySize + entries*entrySize }
	var root, ids, languages, leaves, data []byte
	idsAt := directory(len(order))
	languagesAt := idsAt
	for _, k := range order {
		languagesAt += directory(len(kinds[k]))
	}
	leavesAt := languagesAt + len(all)*directory(1)
	dataAt := leavesAt + len(all)*leafSize

	root = appendDirectory(root, len(order))
	for _, k := range order {
		root = appendEntry(root, k, uint32(idsAt+len(ids))|subdirectory)
		ids = appendDirectory(ids, len(kinds[k]))
		for _, r := range kinds[k] {
			ids = appendEntry(ids, r.id, uint32(languagesAt+len(languages))|subdirectory)
			leaf := uint32(leavesAt + len(leaves))
			languages = appendDirectory(languages, 1)
			languages = appendEntry(languages, languageEnglish, leaf)
			relocations = append(relocations, leaf)
			leaves = binary.LittleEndian.AppendUint32(leaves, uint32(dataAt+len(data)))
			leaves = binary.LittleEndian.AppendUint32(leaves, uint32(len(r.data)))
			leaves = append(leaves, make([]byte, 8)...) // code page, reserved
			data = append(data, r.data...)
			for (dataAt+len(data))%8 != 0 {
				data = append(data, 0)
			}
		}
	}
	for _, part := range [][]byte{root, ids, languages, leaves, data} {
		section = append(section, part...)
	}
	return section, relocations
}

// appendDirectory is an IMAGE_RESOURCE_DIRECTORY of n entries that have numbers, not names.
func appendDirectory(b []byte, n int) []byte {
	b = append(b, make([]byte, directorySize-2)...)
	return binary.LittleEndian.AppendUint16(b, uint16(n))
}

func appendEntry(b []byte, id, to uint32) []byte {
	b = binary.LittleEndian.AppendUint32(b, id)
	return binary.LittleEndian.AppendUint32(b, to)
}
