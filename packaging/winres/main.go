// Command winres writes the resource object that `go build` links into fullbore.exe:
// the version that Windows shows in a file's properties, and the manifest that says
// which Windows it knows, that it wants no administrator, that its paths may be long
// and that its code page is UTF-8. The linker takes every .syso file of the package it
// builds; this one is made before each build and never committed.
//
//	winres -arch amd64 -version v0.1.0 -out cmd/fullbore/rsrc_windows_amd64.syso
//	winres -read dist/windows-amd64/fullbore.exe
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "winres:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("winres", flag.ContinueOnError)
	arch := flags.String("arch", "amd64", "amd64 or arm64")
	version := flags.String("version", "", "what `git describe` says, e.g. v1.2.3-4-gabc")
	path := flags.String("out", "", "the .syso file to write")
	read := flags.String("read", "", "print the version and the manifest inside this program instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || (*path == "") == (*read == "") {
		return fmt.Errorf("give -out FILE.syso or -read FILE.exe, and no other words")
	}
	if *read != "" {
		return show(out, *read)
	}
	v, err := parseVersion(*version)
	if err != nil {
		return err
	}
	object, err := coff(*arch, resources(v))
	if err != nil {
		return err
	}
	return os.WriteFile(*path, object, 0o644)
}

// resources are what the program carries.
func resources(v version) []resource {
	return []resource{
		{kind: rtVersion, id: 1, data: versionInfo(v)},
		{kind: rtManifest, id: 1, data: []byte(manifest(v))},
	}
}

// show prints what read finds in the program at path.
func show(out io.Writer, path string) error {
	all, err := readFile(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range all {
		switch r.kind {
		case rtVersion:
			fixed, words, err := readVersionInfo(r.data)
			if err != nil {
				return fmt.Errorf("%s: version: %w", path, err)
			}
			fmt.Fprintf(out, "file version %d.%d.%d.%d\n", fixed[0], fixed[1], fixed[2], fixed[3])
			for _, w := range words {
				fmt.Fprintf(out, "%s: %s\n", w[0], w[1])
			}
		case rtManifest:
			fmt.Fprintf(out, "%s", r.data)
		}
	}
	return nil
}
