package hints

import (
	"strings"
	"testing"
)

// TestNamesThatNobodyKnowsGetNoHeader: others publish packages under names that models make up.
func TestNamesThatNobodyKnowsGetNoHeader(t *testing.T) {
	may := func(string) bool { return true }
	for module, want := range map[string]string{
		"pandsa":         "does not have pandsa: did you mean pandas?",
		"numpyy":         "did you mean numpy?",
		"matplotib":      "did you mean matplotlib?",
		"sklaern":        "did you mean sklearn (package scikit-learn)?",
		"Pandsa":         "did you mean pandas?",
		"matplotlap":     "did you mean matplotlib?",
		"pil":            "did you mean PIL (package pillow)?",
		"Pandas":         "did you mean pandas?",
		"PyMongo":        "did you mean pymongo?",
		"Matplotlib":     "did you mean matplotlib?",
		"Setuptools":     "did you mean setuptools?",
		"Attrs":          "did you mean attrs?",
		"scikit_learn":   "did you mean sklearn (package scikit-learn)?",
		"pyyaml":         "did you mean yaml (package PyYAML)?",
		"beautifulsoup4": "did you mean bs4 (package beautifulsoup4)?",
		"balance_is_10":  "no well-known package is called so",
		"tools":          "no well-known package is called so",
		"abc1":           "no well-known package is called so",
	} {
		for _, code := range []string{"import " + module, "# /// script\n# dependencies = ['six']\n# ///\nimport " + module} {
			got := For(Case{Failed: true, Error: "ModuleNotFoundError: No module named '" + module + "'", Code: code, Packages: may, Earlier: &Names{}})
			if !strings.Contains(got, want) || strings.Contains(got, "dependencies") {
				t.Errorf("%s: %s", module, got)
			}
		}
	}
	r := Case{Failed: true, Error: "ModuleNotFoundError: No module named 'ours'", Packages: may, Listed: func(name string) bool { return name == "ours" }, Earlier: &Names{}}
	if got := For(r); !strings.Contains(got, `dependencies = ["ours"]`) {
		t.Errorf("of the policy: %s", got)
	}
	r.Error = "ModuleNotFoundError: No module named 'pandsa'"
	if got := For(r); !strings.HasSuffix(got, "did you mean pandas?") {
		t.Errorf("not of the policy: %s", got)
	}
	for name, want := range map[string]string{"pandsa": `["pandas"]`, "frobnicator": `["NAME"]`, "yaml": `["PyYAML"]`, "pandas": `["pandas"]`} {
		if got := installing(Case{Code: "!pip install " + name, Packages: may}); !strings.Contains(got, want) {
			t.Errorf("pip install %s: %s", name, got)
		}
	}
}

func TestPackagesThatAreMeant(t *testing.T) {
	for name, want := range map[string]string{
		"yaml": "PyYAML", "YAML": "PyYAML", "sklearn": "scikit-learn", "cv2": "opencv-python", "pil": "pillow", "bs4": "beautifulsoup4",
		"pandsa": "pandas", "scikit-lern": "scikit-learn", "frobnicator": "", "six2": "", "x": "", strings.Repeat("x", 10_000): "",
	} {
		if got := PackageLike(name); got != want {
			t.Errorf("%.50s: %q, want %q", name, got, want)
		}
	}
	for range 20 { // the same of two that are equally near
		for name, want := range map[string]string{"pypdf3": "pypdf", "pyopengsl": "PyOpenGL", "python-lmap": "python-ldap"} {
			if got := PackageLike(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
	for name := range strings.FieldsSeq(popularText) {
		if plainName(name) != name {
			t.Errorf("%s is not the plain name", name)
		}
	}
}

func TestFiguresOfPlotlyAreKept(t *testing.T) {
	const want = "write_html("
	for code, hinted := range map[string]bool{
		"import plotly.express as px\npx.line(y=[1]).show()":                           true,
		"import plotly.graph_objects as go\nfig = go.Figure()\nfig.show()":             true,
		"from plotly import express\n[express.line(y=[1])][0].show()":                  true,
		"import plotly.express as px\npx.line(y=[1]).show()\nfig.write_html('/tmp/x')": false,
		"import plotly, matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()":           false,
		"import matplotlib.pyplot as plt\nfig = plt.figure()\nfig.show()":              false,
		"import plotly.express as px\npx.line(y=[1])":                                  false,
	} {
		for _, failed := range []bool{false, true} {
			r := Case{Failed: failed, Code: code, Earlier: &Names{}}
			if failed {
				r.Error = "ValueError: Mime type rendering requires nbformat>=4.2.0 but it is not installed"
			}
			if got := For(r); strings.Contains(got, want) != hinted {
				t.Errorf("%q: %s", code, got)
			}
		}
	}
}

func TestScriptsAreNoPackages(t *testing.T) {
	for name, want := range map[string]bool{"discord.py": true, "Discord_PY": true, "report.py": false, "s.py": false, "pandas": true, "google-cloud-storage": true} {
		if got := IsWellKnown(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
