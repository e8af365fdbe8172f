package main

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/toolcell/toolcell/cmd/toolcell/internal/settings"
	"github.com/toolcell/toolcell/oci/doctor"
)

// settingSlips returns a sentence for each variable that is no setting and has nearly
// the name of one. Other unknown variables are ignored, since configs of the Python
// original have some.
func settingSlips(environ []string) (slips []string) {
	const prefix = "MCP_BRIDGE_"
	var names []string
	for _, k := range settings.All {
		if name, ok := strings.CutPrefix(k.Env, prefix); ok {
			names = append(names, name)
		}
	}
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		name, ours := strings.CutPrefix(name, prefix)
		if !ours || slices.Contains(names, name) || strings.HasPrefix(name, "INPUT_") {
			continue
		}
		if near := probablyMeant(name, names); near != "" {
			slips = append(slips, "there is no setting "+prefix+name+"; did you mean "+prefix+near+"?")
		}
	}
	return slips
}

func warnOfSlips(log *slog.Logger) {
	for _, slip := range settingSlips(os.Environ()) {
		log.Warn(slip)
	}
}

// slipChecks are doctor's lines on variables whose names are misspelled.
func slipChecks() (checks []doctor.Check) {
	for _, slip := range settingSlips(os.Environ()) {
		checks = append(checks, doctor.Check{Code: "RC-SETTING", Status: doctor.CheckDegraded, Text: slip, Cure: "toolcell help settings"})
	}
	return checks
}
