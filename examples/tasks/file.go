package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	maxFile = 4 << 20
	maxTask = 1000
)

// file is a todo.txt file. Other programs may write it too, so every call
// reads it anew.
type file struct{ path string }

func (f *file) list(in listTasksIn) ([]task, error) {
	tasks := []task{}
	lines, err := readLines(f.path)
	if err != nil {
		return tasks, err
	}
	for i, line := range lines {
		if strings.TrimSpace(line) == "" {
			continue
		}
		if t := parseTask(i+1, line); t.wanted(in) {
			tasks = append(tasks, t)
		}
	}
	return tasks, nil
}

func (f *file) add(text string) (made task, err error) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxTask || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) {
		return task{}, fmt.Errorf("a task is one line of 1 to %d bytes", maxTask)
	}
	err = f.change(func(lines []string, today string) ([]string, error) {
		line := added(text, today)
		lines = append(lines, line)
		made = parseTask(len(lines), line)
		return lines, nil
	})
	return made, err
}

func (f *file) complete(number int) (done task, err error) {
	err = f.change(func(lines []string, today string) ([]string, error) {
		if number < 1 || number > len(lines) || strings.TrimSpace(lines[number-1]) == "" {
			return nil, fmt.Errorf("no task on line %d", number)
		}
		line := lines[number-1]
		if t := parseTask(number, line); t.Done {
			return nil, fmt.Errorf("the task on line %d, %q, is already done", number, t.Title)
		}
		lines[number-1] = completed(line, today)
		done = parseTask(number, lines[number-1])
		return lines, nil
	})
	return done, err
}

// change replaces the lines of the file by what edit makes of them. The lock
// on the folder keeps other servers of the same file out meanwhile, and the
// rename leaves either the old file or the new one, whatever happens.
func (f *file) change(edit func(lines []string, today string) ([]string, error)) error {
	path, err := filepath.EvalSymlinks(f.path) // a rename would replace a link
	if errors.Is(err, fs.ErrNotExist) {
		path, err = f.path, nil
	}
	if err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close() // also unlocks
	if err := syscall.Flock(int(folder.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %q: %w", folder.Name(), err)
	}
	lines, err := readLines(path)
	if err != nil {
		return err
	}
	lines, err = edit(lines, time.Now().Format(time.DateOnly))
	if err != nil {
		return err
	}
	return replace(path, strings.Join(lines, "\n")+"\n")
}

// replace writes text beside path, then renames it over path.
func replace(path, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".todo-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // gone already if all went well
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	_, err = tmp.WriteString(text)
	if err := errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// readLines returns the lines of the file at path, none if there is no file.
func readLines(path string) ([]string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%q is larger than %d bytes", path, maxFile)
	}
	if len(text) == 0 {
		return nil, nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n"), nil
}
