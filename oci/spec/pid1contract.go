package spec

// The contract with pid 1 (pid1.c), which is this program again.
const (
	// OwnDir is where a sandbox sees toolcell's files: a tmpfs on a mount point that every
	// root file system has.
	OwnDir = "/run/toolcell"
	// ControlFD is the descriptor of the lifeline at first, and then of the control socket.
	ControlFD = 3
	// NestedEnv makes pid1.c create a nested user namespace; its value is "uid:gid:hide",
	// where hide is 1 if /proc must be covered.
	NestedEnv = "_TOOLCELL_NEST"
	// ResolverFD is the descriptor by which pid 1 writes the sandbox's own resolv.conf. The file
	// is made at ResolverFile below the root, where /tmp covers it later, and bound to where it
	// is read.
	ResolverFD   = ControlFD + 1
	ResolverFile = "/tmp/resolv.conf"
	// PID1Name is the name that pid 1 takes in its final namespaces (proc(5), comm).
	PID1Name = "toolcell"

	// ownEnv begins the names of all variables that pid1.c acts on.
	ownEnv = "_TOOLCELL_"
	// pid1Path is where a sandbox sees this program.
	pid1Path = OwnDir + "/init"
	// pid1Env makes pid1.c act; its value is "descriptor:control:template:held:files:nice": the
	// lifeline's descriptor, 1 if the program gets a control socket in its place, 1 for a
	// template, the program's limit on descriptors, and its nice value.
	pid1Env = "_TOOLCELL_PID1"
	// readEnv lists where the code may read apart from its own folders, and writeEnv where it
	// may write: "/a:/b".
	readEnv  = "_TOOLCELL_READ"
	writeEnv = "_TOOLCELL_WRITE"
	// programEnv begins the names of the program's own variables. It gets no others.
	programEnv = "_TOOLCELL_ENV_"
)
