package fork

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/opencontainers/runc/libcontainer/configs"
	"github.com/opencontainers/runc/libcontainer/specconv"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	libseccomp "github.com/seccomp/libseccomp-golang"
	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// filterProgram compiles a profile to the program that the kernel runs, as
// libcontainer would load it. A fork of a template has to load it itself:
// libcontainer can only load it into its own process.
func filterProgram(profile *specs.LinuxSeccomp) ([]byte, error) {
	config, err := specconv.SetupSeccomp(profile)
	if err != nil {
		return nil, fmt.Errorf("converting the seccomp profile: %w", err)
	}
	filter, last, err := buildFilter(config)
	if err != nil {
		return nil, err
	}
	defer filter.Release()
	body, err := exportFilter(filter)
	if err != nil {
		return nil, fmt.Errorf("exporting the seccomp filter: %w", err)
	}
	stub, err := bpf.Assemble(enosysStub(last))
	if err != nil {
		return nil, err
	}
	out, err := binary.Append(nil, binary.NativeEndian, stub)
	if err != nil {
		return nil, err
	}
	out = append(out, body...)
	if n := len(out) / unix.SizeofSockFilter; n > 4096 {
		return nil, fmt.Errorf("the seccomp filter has %d instructions", n)
	}
	return out, nil
}

// buildFilter does what libcontainer's InitSeccomp does, as far as our profiles
// need it. It also returns the highest system call number in the profile.
func buildFilter(config *configs.Seccomp) (filter *libseccomp.ScmpFilter, last libseccomp.ScmpSyscall, err error) {
	if filter, err = libseccomp.NewFilter(filterAction(config.DefaultAction, config.DefaultErrnoRet)); err != nil {
		return nil, 0, fmt.Errorf("making a seccomp filter: %w", err)
	}
	_ = filter.SetOptimize(2) // an older library makes a slower program
	for _, call := range config.Syscalls {
		number, err := libseccomp.GetSyscallFromName(call.Name)
		if err != nil {
			continue // of another processor, or newer than the library
		}
		last = max(last, number)
		action := filterAction(call.Action, call.ErrnoRet)
		var conditions []libseccomp.ScmpCondition
		for _, arg := range call.Args {
			c, err := libseccomp.MakeCondition(arg.Index, operators[arg.Op], arg.Value, arg.ValueTwo)
			if err != nil {
				return nil, 0, fmt.Errorf("making a condition for %s: %w", call.Name, err)
			}
			conditions = append(conditions, c)
		}
		if len(conditions) == 0 {
			err = filter.AddRule(number, action)
		} else {
			err = filter.AddRuleConditional(number, action, conditions)
		}
		if err != nil {
			return nil, 0, fmt.Errorf("adding a rule for %s: %w", call.Name, err)
		}
	}
	return filter, last, nil
}

// filterAction converts the two actions that our profiles use.
func filterAction(a configs.Action, errno *uint) libseccomp.ScmpAction {
	switch a {
	case configs.Allow:
		return libseccomp.ActAllow
	case configs.Errno:
		code := uint(unix.EPERM)
		if errno != nil {
			code = *errno
		}
		return libseccomp.ActErrno.SetReturnCode(int16(code))
	}
	panic(fmt.Sprintf("seccomp action %d: teach filterAction", a))
}

var operators = map[configs.Operator]libseccomp.ScmpCompareOp{
	configs.EqualTo: libseccomp.CompareEqual, configs.NotEqualTo: libseccomp.CompareNotEqual,
	configs.GreaterThan: libseccomp.CompareGreater, configs.GreaterThanOrEqualTo: libseccomp.CompareGreaterEqual,
	configs.LessThan: libseccomp.CompareLess, configs.LessThanOrEqualTo: libseccomp.CompareLessOrEqual,
	configs.MaskEqualTo: libseccomp.CompareMaskedEqual,
}

// exportFilter returns the program, which the library can only write to a file.
func exportFilter(filter *libseccomp.ScmpFilter) (program []byte, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	read := make(chan error, 1)
	go func() {
		var err error
		defer func() { read <- err }()
		defer contain.Error("reading a seccomp filter", &err)
		program, err = io.ReadAll(r)
	}()
	err = filter.ExportBPF(w)
	return program, errors.Join(err, w.Close(), <-read)
}

// enosysStub goes before the program: calls that are newer than all that the
// profile knows answer that they do not exist, so that the C library falls
// back to others (runc, libcontainer/seccomp/patchbpf). Other architectures,
// and x32, whose numbers have bit 30, are left to the program, which refuses
// them.
func enosysStub(last libseccomp.ScmpSyscall) []bpf.Instruction {
	const number, arch, x32 = 0, 4, 1 << 30
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: arch, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: auditArch[runtime.GOARCH], SkipTrue: 4},
		bpf.LoadAbsolute{Off: number, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: x32, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: uint32(last), SkipTrue: 1},
		bpf.RetConstant{Val: seccompErrno | uint32(unix.ENOSYS)},
	}
}

const seccompErrno = 0x50000 // SECCOMP_RET_ERRNO

var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}
