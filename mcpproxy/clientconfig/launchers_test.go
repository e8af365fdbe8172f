package clientconfig_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolcell/toolcell/mcpproxy/clientconfig"
	"github.com/toolcell/toolcell/mcpproxy/config"
)

// TestPackagesOfThisProgramAreFoundInLaunchersArguments, whatever its executable is called.
func TestPackagesOfThisProgramAreFoundInLaunchersArguments(t *testing.T) {
	for line, want := range map[string]bool{
		"npx toolcell":                              true,
		"npx -y toolcell serve":                     true,
		"npx -y @me/toolcell@1.2":                   true,
		"npx -y @toolcell/other":                    false,
		"npx -y other toolcell":                     false, // an argument of the other
		"npx -p helper toolcell":                    true,
		"npx --package helper toolcell":             true,
		"npm exec -- toolcell@latest":               true,
		"uvx toolcell==1.2":                         true,
		"uvx other==1.2":                            false,
		"uvx --from helper toolcell":                true,
		"uvx --python 3.13 toolcell":                true,
		"uv tool run --with helper toolcell":        true,
		"uv run --with helper":                      false,
		"uvx runcell==0.1":                          true, // our former name
		"npx -y bridge@2":                           true, // what this executable is called
		"npx -y bridges":                            false,
		"sh -c npx -y toolcell@latest serve":        true,
		"bash -lc exec /usr/bin/uvx toolcell==1.2;": true,
		"env A=b npx -y bridge@2":                   true,
		"sh -c npx -y other@latest":                 false,
		"cat toolcell@latest":                       false,
		`sh -c npx -y 'toolcell@latest'`:            true,
		`bash -c exec npx -y "toolcell@1"`:          true,
		"sh -c cd /x&&toolcell":                     true,
		"sh -c cd /x;toolcell serve":                true,
		"sh -c (toolcell serve)|cat":                true,
		"sh -c cat /etc/toolcell.conf":              false,
		"uv --directory /src/x run toolcell":        true,
		"uv --directory /src/toolcell run other":    false,
		"npm --prefix /x exec toolcell":             true,
		"npx --registry https://x.example toolcell": true,
		"uvx -w helper toolcell":                    true,
		"npx --package=toolcell@1 tc":               true,
		"npx --package=other@1 tc":                  false,
		"npx -p toolcell@1 tc":                      true,
		"npx --cache=toolcell other":                false,
		"uvx toolcell>=1":                           true,
		"uvx toolcell~=1.0":                         true,
		"uvx toolcell[all]":                         true,
		"uvx toolcells>=1":                          false,
		"go run github.com/x/toolcell/v2@v2.1":      true,
		"go run github.com/x/toolcell@latest":       true,
		"go run github.com/x/other/v2@v2.1":         false,
		"mise x node@22 -- npx -y toolcell@1":       true,
		"mise x node@22 -- npx -y other toolcell":   false,
		"mise exec toolcell@1 -- tc":                false, // which is another program
		"npx npm@latest exec toolcell":              true,
	} {
		words := strings.Fields(line)
		s := config.Server{Transport: config.Stdio, Command: words[0], Args: words[1:]}
		if words[0] == "sh" || words[0] == "bash" {
			s.Args = []string{words[1], strings.Join(words[2:], " ")}
		}
		o := clientconfig.Options{Self: filepath.Join(t.TempDir(), "bridge")}
		if got := o.StartsSelf(s); got != want {
			t.Errorf("%s: starts this program: %v, want %v", line, got, want)
		}
	}
	s := config.Server{Transport: config.Stdio, Command: "npx", Args: []string{"toolcell@1"}}
	if !(clientconfig.Options{}).StartsSelf(s) {
		t.Error("without the path of the executable, its package is not found")
	}
}
