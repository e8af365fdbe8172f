package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// A file is one of an archive.
type file struct {
	name    string
	content []byte
	program bool
}

func (f file) mode() int64 {
	if f.program {
		return 0o755
	}
	return 0o644
}

// writeZip makes a zip archive of files, in their order.
func writeZip(target string, files []file, at time.Time) error {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	w.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		header.SetMode(fs.FileMode(f.mode()))
		entry, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(target, b.Bytes(), 0o644)
}

// writeTarball makes a compressed tar archive of files, sorted by name, with the folders
// that they are in. The owner of all is root.
func writeTarball(target string, files []file, at time.Time) error {
	var b bytes.Buffer
	gz, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(gz)
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return cmp.Compare(a.name, b.name) })
	made := map[string]bool{".": true}
	for _, f := range files {
		if err := writeFolders(w, path.Dir(f.name), made, at); err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: int64(len(f.content)), Mode: f.mode(), ModTime: at, Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := gz.Close(); err != nil {
		return err
	}
	return os.WriteFile(target, b.Bytes(), 0o644)
}

// writeFolders writes dir and the folders above it that are not in made.
func writeFolders(w *tar.Writer, dir string, made map[string]bool, at time.Time) error {
	if made[dir] {
		return nil
	}
	made[dir] = true
	if err := writeFolders(w, path.Dir(dir), made, at); err != nil {
		return err
	}
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: at, Format: tar.FormatUSTAR})
}

// readTree returns the files below dir, with names that begin with prefix.
func readTree(dir, prefix string) (files []file, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		files = append(files, file{path.Join(prefix, filepath.ToSlash(relative)), content, info.Mode()&0o100 != 0})
		return err
	})
	return files, err
}
