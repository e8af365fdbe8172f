//go:build wheels

package e2e

import (
	"path/filepath"
	"testing"
)

// TestPackagesThatPeopleUse are imported, and do something that needs their compiled
// parts.
func TestPackagesThatPeopleUse(t *testing.T) {
	h := firstHost(t)
	for _, image := range pythonImages() {
		c := h.serve(t, env{"TOOLCELL_IMAGE": image, "TOOLCELL_TIMEOUT": "120s", "TOOLCELL_MEMORY": "2g"})
		for name, tt := range map[string]struct{ packages, code, want string }{
			"numpy":       {"numpy", "import numpy as np; print(np.linalg.inv(np.eye(2) * 2)[0, 0])", "0.5"},
			"pandas":      {"pandas", "import pandas as pd; print(pd.DataFrame({'a': [1, 2]}).a.sum())", "3"},
			"polars":      {"polars", "import polars as pl; print(pl.DataFrame({'a': [1, 2]})['a'].sum())", "3"},
			"sklearn":     {"scikit-learn", "from sklearn.linear_model import LinearRegression as L; print(round(L().fit([[0], [1]], [0, 2]).coef_[0]))", "2"},
			"matplotlib":  {"matplotlib", "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('x.png'); plt.close(); import os; print(os.path.getsize('x.png') > 1000)", "True"},
			"plotly":      {"plotly", "import plotly.graph_objects as go; print(len(go.Figure(go.Bar(y=[1])).data))", "1"},
			"pillow":      {"pillow", "from PIL import Image; print(Image.new('RGB', (2, 3)).size)", "(2, 3)"},
			"lxml":        {"lxml", "from lxml import etree; print(etree.fromstring('<a><b/></a>')[0].tag)", "b"},
			"httpx":       {"httpx", "import httpx; print(httpx.URL('https://x.org/a').path)", "/a"},
			"pydantic":    {"pydantic", "import pydantic; print(pydantic.TypeAdapter(int).validate_python('3'))", "3"},
			"crypto":      {"cryptography", "from cryptography.fernet import Fernet; f = Fernet(Fernet.generate_key()); print(f.decrypt(f.encrypt(b'x')))", "b'x'"},
			"as a module": {"black", "import subprocess, sys; print(subprocess.run([sys.executable, '-m', 'black', '--version'], capture_output=True, text=True).returncode)", "0"},
		} {
			t.Run(filepath.Base(image)+" "+name, func(t *testing.T) {
				c.call(t, map[string]any{"code": script(tt.code, tt.packages), "timeout": 120}).want(t, tt.want)
			})
		}
	}
}
