package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		Uses        string            `yaml:"uses"`
		Needs       any               `yaml:"needs"`
		Timeout     int               `yaml:"timeout-minutes"`
		Environment string            `yaml:"environment"`
		Permissions map[string]string `yaml:"permissions"`
		Steps       []workflowStep    `yaml:"steps"`
	} `yaml:"jobs"`
}

type workflowStep struct {
	Uses string         `yaml:"uses"`
	Run  string         `yaml:"run"`
	With map[string]any `yaml:"with"`
}

func readYAML(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestReleaseJobsHaveTheLeastRights: who can push to a branch can change what jobs with our
// code do, so none of those may publish.
func TestReleaseJobsHaveTheLeastRights(t *testing.T) {
	var w workflow
	readYAML(t, "../../.github/workflows/release.yml", &w)
	if got := fmt.Sprint(w.Permissions); got != "map[contents:read]" {
		t.Errorf("the workflow's permissions are %s", got)
	}
	rights := map[string]string{
		"github":       "map[attestations:write contents:write id-token:write]",
		"pypi":         "map[id-token:write]",
		"npm":          "map[id-token:write]",
		"mcp-registry": "map[id-token:write]",
	}
	for _, name := range slices.Sorted(maps.Keys(w.Jobs)) {
		job := w.Jobs[name]
		if job.Uses != "" {
			continue
		}
		if job.Timeout == 0 {
			t.Errorf("%s has no timeout", name)
		}
		want, publishes := rights[name]
		delete(rights, name)
		if !publishes {
			want = "map[]"
		}
		if got := fmt.Sprint(job.Permissions); got != want {
			t.Errorf("%s has the permissions %s, want %s", name, got, want)
		}
		if publishes && job.Environment != name {
			t.Errorf("%s has the environment %q, want its own", name, job.Environment)
		}
		for _, s := range job.Steps {
			if publishes && (strings.HasPrefix(s.Uses, "actions/checkout@") || strings.HasPrefix(s.Uses, "./") || strings.Contains(s.Run, ".ci/")) {
				t.Errorf("%s publishes and runs our code: %s%s", name, s.Uses, s.Run)
			}
			// What was built to try an upgrade, or to compare bytes, is not for others.
			if artifact := fmt.Sprint(s.With["name"]); publishes && strings.HasPrefix(s.Uses, "actions/download-artifact@") && artifact != "release" && artifact != "notes" {
				t.Errorf("%s publishes what is in the artifact %s", name, artifact)
			}
			if strings.Contains(s.Run, "secrets.") {
				t.Errorf("%s uses a secret", name)
			}
		}
	}
	if len(rights) > 0 {
		t.Errorf("there are no jobs %v", rights)
	}
}

func TestNothingIsPublishedUntested(t *testing.T) {
	var w workflow
	readYAML(t, "../../.github/workflows/release.yml", &w)
	for name, want := range map[string]string{
		"build": "ci", "same-bytes": "build", "install": "build", "systems": "build",
		"github": "[same-bytes install systems]", "pypi": "[same-bytes install systems]", "npm": "[same-bytes install systems]",
		"mcp-registry": "[pypi npm]",
	} {
		if got := fmt.Sprint(w.Jobs[name].Needs); got != want {
			t.Errorf("%s needs %s, want %s", name, got, want)
		}
	}
}

func TestActionIsComposite(t *testing.T) {
	var a struct {
		Name, Description string
		Inputs            map[string]struct{ Description, Default string }
		Outputs           map[string]struct{ Description, Value string }
		Runs              struct {
			Using string
			Steps []struct{ ID, If, Shell, Run string }
		}
	}
	readYAML(t, "../../action.yml", &a)
	defaults := map[string]string{}
	for name, input := range a.Inputs {
		if input.Description == "" {
			t.Errorf("nothing is said of %s", name)
		}
		defaults[name] = input.Default
	}
	if got, want := fmt.Sprint(defaults), "map[apparmor:true image:host version:latest]"; got != want {
		t.Errorf("inputs = %s, want %s", got, want)
	}
	if a.Runs.Using != "composite" || len(a.Runs.Steps) != 2 {
		t.Fatalf("%+v", a.Runs)
	}
	for i, script := range []string{"install.sh", "apparmor.sh"} {
		s := a.Runs.Steps[i]
		if s.Shell != "bash" || s.Run != `"$GITHUB_ACTION_PATH/.ci/action/`+script+`"` {
			t.Errorf("step %d is %+v", i, s)
		}
		if info, err := os.Stat("../action/" + script); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %v, or it cannot be run", script, err)
		}
	}
	if got := a.Outputs["version"].Value; got != "${{ steps.install.outputs.version }}" || a.Runs.Steps[0].ID != "install" {
		t.Errorf("the output is %q, of step %q", got, a.Runs.Steps[0].ID)
	}
}
