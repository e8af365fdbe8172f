package spec

// What is agreed on with pid 1 (pid1.c), which is this program again.
const (
	// OwnDir is where a sandbox sees what is ours: a tmpfs over a mount point that
	// every root file system has.
	OwnDir = "/run/toolcell"
	// ControlFD is the lifeline's descriptor at first, and then the control socket's.
	ControlFD = 3
	// NestedEnv makes pid1.c nest a user namespace; its value is "uid:gid:hide", where
	// hide is 1 if /proc is to be covered.
	NestedEnv = "_TOOLCELL_NEST"
	// PID1Name is what pid 1 calls itself once it is where it stays (proc(5), comm).
	PID1Name = "toolcell"

	// ownEnv begins the names of all variables that pid1.c acts on.
	ownEnv = "_TOOLCELL_"
	// pid1Path is where a sandbox sees this program.
	pid1Path = OwnDir + "/init"
	// pid1Env makes pid1.c act; its value is "descriptor:control:template:files:nice":
	// where the lifeline is, 1 if the program is to have a control socket in its place, 1
	// if it is a template, how many descriptors the program may have, and how nice it is.
	pid1Env = "_TOOLCELL_PID1"
	// readEnv says where the code may read apart from its own folders, and writeEnv
	// where it may write: "/a:/b".
	readEnv  = "_TOOLCELL_READ"
	writeEnv = "_TOOLCELL_WRITE"
	// programEnv begins the names of the program's own variables. It gets no others.
	programEnv = "_TOOLCELL_ENV_"
)
