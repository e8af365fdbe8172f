package homes

import (
	"context"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxSkipped = 10 // looks at the file system alone, one after another
	maxFailed  = 3  // measurements, one after another
)

// Watch looks at the size of a server's folder every so often, and returns when it is larger than
// limit, in bytes, with what there is. Else it returns an error: the cause of ctx when that ends, or why
// the folder could not be measured several times in a row.
//
// While the file system loses no space it measures only now and then, since that costs a process.
func (s *Store) Watch(ctx context.Context, name string, limit int64, every time.Duration) (Use, error) {
	return s.watch(ctx, record{Name: name}, limit, every)
}

func (s *Store) watch(ctx context.Context, of record, limit int64, every time.Duration) (Use, error) {
	w := watch{
		limit: limit, skipped: maxSkipped,
		free:    func() int64 { return freeBytes(filepath.Join(s.dir, of.folder())) },
		measure: func() (Use, error) { return s.size(ctx, of, limit) },
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		over, err := w.step()
		if ctx.Err() != nil {
			return Use{}, context.Cause(ctx)
		}
		if over || err != nil {
			return w.last, err
		}
		select {
		case <-ctx.Done():
			return Use{}, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// A watch is what is known of a folder.
type watch struct {
	limit   int64
	free    func() int64 // bytes of the file system
	measure func() (Use, error)

	last    Use
	lastAt  int64 // free bytes then
	skipped int   // steps since then
	failed  int   // measurements
}

// step reports whether the folder is larger than the limit. It measures only if the file system has
// lost half of what the folder may still take, or others could have freed as much for long.
func (w *watch) step() (over bool, err error) {
	free := w.free()
	if w.skipped < maxSkipped && w.lastAt-free < (w.limit-w.last.Bytes)/2 {
		w.skipped++
		return false, nil
	}
	use, err := w.measure()
	if err != nil {
		if w.failed++; w.failed < maxFailed {
			return false, nil
		}
		return false, err
	}
	w.last, w.lastAt, w.skipped, w.failed = use, free, 0, 0
	return use.More || use.Bytes > w.limit, nil
}

// freeBytes returns how much space a file system has, 0 if that cannot be found out.
func freeBytes(path string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0
	}
	return int64(st.Bfree) * st.Bsize
}
