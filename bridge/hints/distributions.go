package hints

import "strings"

// Distribution returns the name under which a module can be installed: mostly its
// own, up to the first dot.
func Distribution(module string) string {
	for prefix := module; ; {
		if name, ok := distributions[prefix]; ok {
			return name
		}
		dot := strings.LastIndexByte(prefix, '.')
		if dot < 0 {
			return prefix
		}
		prefix = prefix[:dot]
	}
}

// distributions are the names on PyPI of packages that are imported under another. Names that
// pip takes for the same (PEP 503: case, and - for _) need no row.
var distributions = map[string]string{
	"attr":                  "attrs",
	"azure.identity":        "azure-identity",
	"azure.storage.blob":    "azure-storage-blob",
	"barcode":               "python-barcode",
	"Bio":                   "biopython",
	"bs4":                   "beautifulsoup4",
	"cairo":                 "pycairo",
	"community":             "python-louvain",
	"Crypto":                "pycryptodome",
	"Cryptodome":            "pycryptodomex",
	"cv2":                   "opencv-python",
	"dateutil":              "python-dateutil",
	"discord":               "discord.py",
	"dns":                   "dnspython",
	"docx":                  "python-docx",
	"dotenv":                "python-dotenv",
	"faiss":                 "faiss-cpu",
	"fitz":                  "PyMuPDF",
	"fpdf":                  "fpdf2",
	"gi":                    "PyGObject",
	"git":                   "GitPython",
	"github":                "PyGithub",
	"gitlab":                "python-gitlab",
	"google.auth":           "google-auth",
	"google.cloud.bigquery": "google-cloud-bigquery",
	"google.cloud.storage":  "google-cloud-storage",
	"google.genai":          "google-genai",
	"google.generativeai":   "google-generativeai",
	"google.oauth2":         "google-auth",
	"google.protobuf":       "protobuf",
	"googleapiclient":       "google-api-python-client",
	"grpc":                  "grpcio",
	"haystack":              "haystack-ai",
	"jose":                  "python-jose",
	"jwt":                   "PyJWT",
	"kafka":                 "kafka-python",
	"ldap":                  "python-ldap",
	"Levenshtein":           "python-Levenshtein",
	"magic":                 "python-magic",
	"markdown_it":           "markdown-it-py",
	"mpl_toolkits":          "matplotlib",
	"multipart":             "python-multipart",
	"mysql.connector":       "mysql-connector-python",
	"MySQLdb":               "mysqlclient",
	"nacl":                  "PyNaCl",
	"nmap":                  "python-nmap",
	"OpenGL":                "PyOpenGL",
	"OpenSSL":               "pyOpenSSL",
	"opentelemetry":         "opentelemetry-api",
	"opentelemetry.sdk":     "opentelemetry-sdk",
	"osgeo":                 "GDAL",
	"paho":                  "paho-mqtt",
	"PIL":                   "pillow",
	"pkg_resources":         "setuptools",
	"pptx":                  "python-pptx",
	"psycopg2":              "psycopg2-binary",
	"rest_framework":        "djangorestframework",
	"ruamel.yaml":           "ruamel.yaml",
	"serial":                "pyserial",
	"skbio":                 "scikit-bio",
	"skimage":               "scikit-image",
	"sklearn":               "scikit-learn",
	"slugify":               "python-slugify",
	"snowflake.connector":   "snowflake-connector-python",
	"socks":                 "PySocks",
	"speech_recognition":    "SpeechRecognition",
	"telegram":              "python-telegram-bot",
	"tlz":                   "toolz",
	"umap":                  "umap-learn",
	"usb":                   "pyusb",
	"vlc":                   "python-vlc",
	"websocket":             "websocket-client",
	"whois":                 "python-whois",
	"wx":                    "wxPython",
	"Xlib":                  "python-xlib",
	"yaml":                  "PyYAML",
	"zmq":                   "pyzmq",
}
