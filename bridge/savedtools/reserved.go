package savedtools

import (
	"errors"
	"fmt"
)

// ErrReserved is in the chain of an error when no tool may have its name.
var ErrReserved = errors.New("the name is taken")

// reserved are names that code often uses and sometimes forgets to import: a tool
// of that name would be called instead of failing. This program knows no image, so
// these are names that stand for the same thing in all code. The runner refuses
// those of the modules that its image has.
var reserved = map[string]string{
	"alt": "altair", "bs4": "bs4", "cv2": "cv2", "dd": "dask.dataframe", "ET": "xml.etree.ElementTree", "go": "plotly.graph_objects",
	"gpd": "geopandas", "httpx": "httpx", "jnp": "jax.numpy", "lgb": "lightgbm", "matplotlib": "matplotlib", "mp": "multiprocessing",
	"mpl": "matplotlib", "nn": "torch.nn", "np": "numpy", "numpy": "numpy", "nx": "networkx", "openpyxl": "openpyxl", "pa": "pyarrow",
	"pandas": "pandas", "pd": "pandas", "PIL": "PIL", "pl": "polars", "plotly": "plotly", "plt": "matplotlib.pyplot",
	"polars": "polars", "px": "plotly.express", "requests": "requests", "scipy": "scipy", "sk": "sklearn", "sklearn": "sklearn",
	"sm": "statsmodels.api", "sns": "seaborn", "sp": "scipy", "st": "streamlit", "tf": "tensorflow", "torch": "torch",
	"xgb": "xgboost", "xr": "xarray", "yaml": "yaml",
	"BeautifulSoup": "bs4", "BytesIO": "io", "Counter": "collections", "date": "datetime", "datetime": "datetime", "Decimal": "decimal",
	"DataFrame": "pandas", "dataclass": "dataclasses", "deepcopy": "copy", "defaultdict": "collections", "deque": "collections",
	"dt": "datetime", "json": "json", "math": "math", "namedtuple": "collections", "os": "os", "partial": "functools",
	"Path": "pathlib", "re": "re", "reduce": "functools", "sleep": "time", "sqrt": "math", "StringIO": "io", "sys": "sys",
	"time": "time", "timedelta": "datetime", "tqdm": "tqdm",
	"mcp": "mcp", "runtime": "mcp", "user_tools": "user_tools",
}

// checkReserved returns an error if no tool may have this name.
func checkReserved(name string) error {
	module, ok := reserved[name]
	if !ok {
		return nil
	}
	what := "the usual name for something of the module " + module
	if module == name {
		what = "the name of a module"
	}
	return fmt.Errorf("%w: %s is %s, and code that forgot to import it would call the tool; give the function another name", ErrReserved, name, what)
}
