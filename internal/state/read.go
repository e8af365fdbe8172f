package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ReadRegular reads a regular file of at most most bytes, without a leading byte
// order mark. It opens with O_NONBLOCK, since a named pipe in place of the file
// would block for ever.
func ReadRegular(path string, most int64) ([]byte, error) {
	data, _, err := ReadExact(path, most)
	if errors.Is(err, syscall.ENOTDIR) { // a file where a folder would be: there is none
		err = &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), err // editors on Windows leave a mark
}

// ReadExact is ReadRegular for a file that will be changed: it leaves a mark in place, and
// returns what the system knows of the file.
func ReadExact(path string, most int64) (data []byte, info fs.FileInfo, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	switch {
	case info.IsDir():
		return nil, nil, errors.New("is a directory")
	case !info.Mode().IsRegular():
		return nil, nil, errors.New("is not a regular file")
	}
	data, err = io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("is larger than %s", sizeText(most))
	}
	if err != nil {
		return nil, nil, err
	}
	return data, info, nil
}

// Reason is the text of a file error without the path, for messages that already
// name the file.
func Reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

func sizeText(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
