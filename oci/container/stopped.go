package container

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// allStopped reports whether all that stem from a process are stopped or have ended. No
// process of a sandbox can leave the tree of its first one. What cannot be read is not
// stopped: it may have ended just now, and its children are others'.
func allStopped(pid int) bool {
	children, err := childrenOf(pid)
	if err != nil {
		return false
	}
	for _, child := range children {
		if !threadsStopped(child) || !allStopped(child) {
			return false
		}
	}
	return true
}

// threadsStopped reports whether every thread of a process is stopped or has ended.
func threadsStopped(pid int) bool {
	threads, err := threadsOf(pid)
	if err != nil {
		return false
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread + "/stat")
		if err != nil {
			return false
		}
		// The name before it may have any character (proc(5)).
		_, after, found := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
		if !found || len(after) == 0 || !bytes.ContainsRune([]byte("TtZX"), rune(after[0])) {
			return false
		}
	}
	return true
}

// childrenOf returns the processes that any thread of one has started.
func childrenOf(pid int) (children []int, err error) {
	threads, err := threadsOf(pid)
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		all, err := os.ReadFile(thread + "/children")
		if err != nil {
			return nil, err
		}
		for field := range strings.FieldsSeq(string(all)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				return nil, err
			}
			children = append(children, child)
		}
	}
	return children, nil
}

// threadsOf returns the folders of a process's threads in /proc.
func threadsOf(pid int) (threads []string, err error) {
	at := fmt.Sprintf("/proc/%d/task/", pid)
	entries, err := os.ReadDir(at)
	for _, e := range entries {
		threads = append(threads, at+e.Name())
	}
	return threads, err
}
