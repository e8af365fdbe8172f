package spec

// A Process says what to run, and in what.
type Process struct {
	Root   Root
	Binds  []Bind // below /run/toolcell
	Args   []string
	Env    []string // the whole environment: none is inherited
	Limits Limits
	Python *Python // how to start it ahead of its use; nil if that is not possible
	// Control gives the process a stream socket to the host as descriptor 3.
	Control  bool
	Template bool     // sandboxes are forked from it
	Top      []string // names at the top of Root.Dir that have files
	Proc     string   // folder of the host with what covers CoveredFiles, "" if nothing does
}

// A Root is the root file system of a sandbox.
type Root struct {
	Dir   string // on the host, absolute, without symbolic links
	Binds []Bind // what is mounted over it, in addition to the usual
}

// A Bind is a file or directory of the host shown read-only in a sandbox.
type Bind struct {
	Source string // on the host, absolute, without symbolic links
	Target string // in the sandbox, absolute
}

// A Mount is a folder or file of the host that every sandbox is shown.
type Mount struct {
	Source   string // on the host, absolute, without symbolic links
	Target   string // in the sandbox, absolute; there is a place for it in the root
	Writable bool
}

// A Python says of a Process that it is a Python program, and how it can be
// started before it is needed (fork.py): the program is a file that defines
// main, which gives the exit code, and which it calls itself if its __name__
// is __main__.
type Python struct {
	Interpreter []string // its path inside, and its options
	Program     string   // its path inside
	Base        []string // modules to import beforehand, as far as they are there
	Preload     []string // modules that the user wants imported beforehand
	// Alone says that Preload names modules that are trusted as little as code: each
	// sandbox imports them for itself, and none is forked from a template.
	Alone bool
}
