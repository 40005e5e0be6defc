package service

import (
	"context"
	"encoding/xml"
	"fmt"
	"strings"
)

const (
	launchdLabel = "net.fullbore.serve"
	launchdFile  = "/Library/LaunchDaemons/" + launchdLabel + ".plist"
	launchdLog   = "/var/log/fullbore.log"
)

// plist is the service for launchd (launchd.plist(5)).
func plist(s Spec) string {
	var words strings.Builder
	for _, w := range append([]string{s.Program}, s.Words()...) {
		words.WriteString("    <string>")
		_ = xml.EscapeText(&words, []byte(w)) // a Builder takes everything
		words.WriteString("</string>\n")
	}
	return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>
  <string>` + launchdLabel + `</string>
  <key>ProgramArguments</key>
  <array>
` + words.String() + `  </array>
  <key>UserName</key>
  <string>nobody</string>
  <key>RunAtLoad</key>
  <true/>
  <key>KeepAlive</key>
  <dict>
    <key>SuccessfulExit</key>
    <false/>
  </dict>
  <key>SoftResourceLimits</key>
  <dict>
    <key>NumberOfFiles</key>
    <integer>10240</integer>
  </dict>
  <key>StandardOutPath</key>
  <string>` + launchdLog + `</string>
  <key>StandardErrorPath</key>
  <string>` + launchdLog + `</string>
</dict>
</plist>
`
}

// launchdText is Text for launchd.
func launchdText(s Spec) (file, contents string, steps []string, err error) {
	return launchdFile, plist(s), []string{
		"sudo install -m 644 -o nobody /dev/null " + launchdLog,
		"sudo chown root:wheel " + launchdFile + " && sudo launchctl bootstrap system " + launchdFile,
		"sudo launchctl bootout system/" + launchdLabel + " && sudo rm " + launchdFile + "   # to remove it",
	}, nil
}

func (m Manager) launchdInstall(context.Context, Spec) ([]string, error) {
	return nil, fmt.Errorf("service: launchd's file is printed: %w", ErrPrint)
}

func (m Manager) launchdUninstall(context.Context) ([]string, error) {
	return nil, fmt.Errorf("service: sudo launchctl bootout system/%s && sudo rm %s: %w", launchdLabel, launchdFile, ErrPrint)
}
