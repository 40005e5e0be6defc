package main

import (
	"bytes"
	"debug/pe"
	"encoding/xml"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVersion(t *testing.T) {
	for _, c := range []struct {
		text    string
		numbers [4]uint16
		release bool
	}{
		{"v1.2.3", [4]uint16{1, 2, 3, 0}, true},
		{"0.1.0", [4]uint16{0, 1, 0, 0}, true},
		{"v1.2.3-45-gabcdef0", [4]uint16{1, 2, 3, 45}, false},
		{"v1.2.3-45-gabcdef0-dirty", [4]uint16{1, 2, 3, 45}, false},
		{"v1.2.3-dirty", [4]uint16{1, 2, 3, 0}, false},
		{"0.1.0-dev", [4]uint16{0, 1, 0, 0}, false},
		{"c2b77e4-dirty", [4]uint16{}, false},
		{"v1.2.x", [4]uint16{}, false},
	} {
		got, err := parseVersion(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if got.numbers != c.numbers || got.release != c.release || got.text != c.text {
			t.Errorf("%s: %+v", c.text, got)
		}
	}
	for _, bad := range []string{"", "v1.2.70000"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q was taken as %+v", bad, v)
		}
	}
}

// TestLinked builds a program with the resource and reads it back through debug/pe.
func TestLinked(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		t.Run(arch, func(t *testing.T) {
			dir := t.TempDir()
			for name, content := range map[string]string{
				"go.mod":  "module probe\n\ngo 1.26.0\n",
				"main.go": "package main\n\nfunc main() {}\n",
			} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			syso := filepath.Join(dir, "rsrc_windows_"+arch+".syso")
			if err := run([]string{"-arch", arch, "-version", "v1.2.3-45-gabc", "-out", syso}, io.Discard); err != nil {
				t.Fatal(err)
			}
			build := exec.Command("go", "build", "-o", "probe.exe", ".")
			build.Dir = dir
			build.Env = append(os.Environ(), "GOOS=windows", "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off")
			if out, err := build.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			checkProgram(t, filepath.Join(dir, "probe.exe"), arch)
		})
	}
}

func checkProgram(t *testing.T, exe, arch string) {
	t.Helper()
	f, err := pe.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // read only
	if f.Machine != machines[arch].id {
		t.Errorf("machine %#x", f.Machine)
	}
	section := f.Section(resourceSection)
	if section == nil {
		t.Fatal("the linker took no .rsrc section")
	}
	if section.Characteristics&pe.IMAGE_SCN_MEM_WRITE != 0 {
		t.Error("the resources can be written to")
	}
	all, err := readFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []uint32
	for _, r := range all {
		kinds = append(kinds, r.kind)
	}
	if diff := cmp.Diff([]uint32{rtVersion, rtManifest}, kinds); diff != "" {
		t.Fatal(diff)
	}
	fixed, words, err := readVersionInfo(all[0].data)
	if err != nil {
		t.Fatal(err)
	}
	if want := [4]uint16{1, 2, 3, 45}; fixed != want {
		t.Errorf("file version %v, want %v", fixed, want)
	}
	want := version{text: "v1.2.3-45-gabc"}.strings()
	if diff := cmp.Diff(want, words); diff != "" {
		t.Error(diff)
	}
	checkManifest(t, all[1].data)
	var shown bytes.Buffer
	if err := run([]string{"-read", exe}, &shown); err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"file version 1.2.3.45\n", "ProductVersion: v1.2.3-45-gabc\n", "asInvoker"} {
		if !strings.Contains(shown.String(), word) {
			t.Errorf("-read does not show %q:\n%s", word, shown.String())
		}
	}
}

func checkManifest(t *testing.T, data []byte) {
	t.Helper()
	var m struct {
		XMLName  xml.Name `xml:"urn:schemas-microsoft-com:asm.v1 assembly"`
		Identity struct {
			Version string `xml:"version,attr"`
		} `xml:"assemblyIdentity"`
		Level struct {
			Level    string `xml:"level,attr"`
			UIAccess string `xml:"uiAccess,attr"`
		} `xml:"urn:schemas-microsoft-com:asm.v3 trustInfo>security>requestedPrivileges>requestedExecutionLevel"`
		OS []struct {
			ID string `xml:"Id,attr"`
		} `xml:"urn:schemas-microsoft-com:compatibility.v1 compatibility>application>supportedOS"`
		Settings struct {
			LongPath string `xml:"http://schemas.microsoft.com/SMI/2016/WindowsSettings longPathAware"`
			CodePage string `xml:"http://schemas.microsoft.com/SMI/2019/WindowsSettings activeCodePage"`
		} `xml:"urn:schemas-microsoft-com:asm.v3 application>windowsSettings"`
	}
	if err := xml.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	if m.Identity.Version != "1.2.3.45" || m.Level.Level != "asInvoker" || m.Level.UIAccess != "false" || m.Settings.LongPath != "true" || m.Settings.CodePage != "UTF-8" {
		t.Errorf("manifest: %+v", m)
	}
	if len(m.OS) != 1 || m.OS[0].ID != "{8e0f7a12-bfb3-4fe8-b9a5-48fd50a15a9a}" {
		t.Errorf("supported systems: %+v", m.OS)
	}
}

func TestUsage(t *testing.T) {
	out := filepath.Join(t.TempDir(), "x.syso")
	for _, args := range [][]string{
		{},
		{"-out", out, "-version", "1.2.3", "-arch", "386"},
		{"-out", out},
		{"-out", out, "-read", out, "-version", "1.2.3"},
		{"-out", out, "-version", "1.2.3", "word"},
		{"-read", out},
	} {
		if err := run(args, io.Discard); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused command line wrote a file")
	}
}

// FuzzRead: a broken file is an error, never a crash.
func FuzzRead(f *testing.F) {
	v, err := parseVersion("v1.2.3")
	if err != nil {
		f.Fatal(err)
	}
	section, _ := tree(resources(v))
	f.Add(section)
	f.Add(versionInfo(v))
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = readTree(b, 0)
		_, _, _ = readVersionInfo(b)
	})
}
