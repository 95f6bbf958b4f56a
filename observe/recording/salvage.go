package recording

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// salvage makes dumps of the segments that killed processes left, and deletes them. If a dump cannot be written, its
// segments are kept, and r.killed has the error. The error of salvage is that of the folder.
func (r *Ring) salvage() error {
	r.dumps.Lock()
	defer r.dumps.Unlock()
	// The state of a killed process cannot be read without its memory. Deleting it makes room for the dump.
	for _, name := range []string{baseName, baseName + "-new"} {
		if err := remove(filepath.Join(r.o.Dir, name)); err != nil {
			return err
		}
	}
	segments, err := files(r.o.Dir, "segment-", "")
	if err != nil {
		return err
	}
	sets, last, err := r.sets()
	if err != nil {
		return err
	}
	if r.killed = r.dumpKilled(segments); r.killed == nil {
		if err = removeAll(segments); err != nil {
			return err
		}
		for _, set := range sets {
			if err := r.dumpKilled(set); err != nil {
				r.killed = errors.Join(r.killed, err)
			} else if err := removeAll(set); err != nil {
				return err
			}
		}
		return r.prune("")
	}
	for i, path := range segments {
		if err := os.Rename(path, setName(r.o.Dir, last+1, i+1)); err != nil {
			return err
		}
	}
	for len(sets) >= r.o.MaxDumps {
		if err := removeAll(sets[0]); err != nil {
			return err
		}
		sets = sets[1:]
	}
	return nil
}

// dumpKilled makes a dump of the segments of a killed process, if they have records. If it fails, it leaves no file.
func (r *Ring) dumpKilled(segments []string) error {
	if len(segments) == 0 {
		return nil
	}
	path, file, err := r.create("killed-")
	if err != nil {
		return killedError(err)
	}
	w := newWriter(file, time.Now())
	err = copyKilled(w, segments)
	empty := len(w.index.Blocks) == 0 && w.lastIndex == 0 && w.head.records == 0
	if err = cmp.Or(err, w.close(), file.Close()); err != nil || empty {
		err = cmp.Or(err, os.Remove(path))
	}
	if err != nil {
		return killedError(err)
	}
	return nil
}

func killedError(err error) error {
	return fmt.Errorf("recording: dump of a killed process (its segments are kept as killed-*.rec): %w", err)
}

// copyKilled copies the records of the segments of a killed process.
func copyKilled(w *writer, segments []string) error {
	lost := map[uint64]bool{}
	for _, path := range segments {
		f, err := Open(path)
		if errors.Is(err, ErrNotRecording) {
			continue // the process was killed before it had written the header
		}
		if err != nil {
			return err
		}
		if err = cmp.Or(copyRecords(w, f.Reader, lost), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// setName returns the name of a segment in a set that is kept.
func setName(dir string, set, n int) string {
	return filepath.Join(dir, fmt.Sprintf("killed-%08d-%08d.rec", set, n))
}

// sets returns the paths of the kept sets of segments, beginning with the oldest set, and the number of the last one.
func (r *Ring) sets() (sets [][]string, last int, err error) {
	all, err := files(r.o.Dir, "killed-", ".rec")
	for _, path := range all {
		var set, n int
		_, err := fmt.Sscanf(filepath.Base(path), "killed-%d-%d.rec", &set, &n)
		if err != nil || set < 1 || setName(r.o.Dir, set, n) != path {
			continue // the file of somebody else
		}
		if set != last {
			sets, last = append(sets, nil), set
		}
		sets[len(sets)-1] = append(sets[len(sets)-1], path)
	}
	return sets, last, err
}

// removeAll deletes files that may be deleted already.
func removeAll(paths []string) (err error) {
	for _, path := range paths {
		err = cmp.Or(err, remove(path))
	}
	return err
}
