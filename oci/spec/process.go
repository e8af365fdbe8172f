package spec

// A Process describes what to run, and in which sandbox.
type Process struct {
	Root   Root
	Binds  []Bind // below /run/toolcell
	Args   []string
	Env    []string // complete: nothing is inherited
	Limits Limits
	Python *Python // how to start it in advance; nil if that is impossible
	// Control gives the process a stream socket to the host, as descriptor 3.
	Control  bool
	Template bool     // sandboxes are forked from it
	Top      []string // names at the top of Root.Dir that have files
	Proc     string   // folder of the host with substitutes for CoveredFiles, or ""
}

// A Root is the root file system of a sandbox.
type Root struct {
	Dir   string // on the host, absolute, without symbolic links
	Binds []Bind // mounted on it, in addition to the usual mounts
}

// A Bind is a read-only bind mount of a file or directory of the host.
type Bind struct {
	Source string // on the host, absolute, without symbolic links
	Target string // in the sandbox, absolute
}

// A Mount is a folder or file of the host in every sandbox.
type Mount struct {
	Source   string // on the host, absolute, without symbolic links
	Target   string // in the sandbox, absolute; the root has a mount point for it
	Writable bool
}

// A Python describes how to start a Python program in advance (fork.py): a file that defines
// main, which returns the exit code, and calls it if its __name__ is __main__.
type Python struct {
	Interpreter []string // its path inside, and its options
	Program     string   // its path inside
	Base        []string // modules to import in advance, if they exist
	Preload     []string // modules that the user wants imported in advance
	// Alone means that the modules of Preload are as untrusted as code: each sandbox imports
	// them itself, and none is forked from a template.
	Alone bool
}
