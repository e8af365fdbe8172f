package spec

// The protocol with pid 1 (pid1.c), which is this program again.

// pid1Path is where a sandbox sees this program.
const pid1Path = OwnDir + "/init"

// pid1Env makes pid1.c act; its value is "descriptor:control": where the
// lifeline is, and 1 if the program is to have a control socket in its place.
const pid1Env = "_TOOLCELL_PID1"

// ControlFD is the lifeline's descriptor at first, and then the control
// socket's.
const ControlFD = 3

// NestEnv makes pid1.c nest a user namespace; its value is "uid:gid:hide", hide
// being 1 if /proc is to be covered.
const NestEnv = "_TOOLCELL_NEST"

// writeEnv tells pid1.c where the code may write besides the usual places.
const writeEnv = "_TOOLCELL_WRITE"

// PID1Name is what pid 1 calls itself once it is where it stays (proc(5), comm).
const PID1Name = "toolcell"
