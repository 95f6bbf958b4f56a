package measure

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PeakRSS returns the largest resident memory of this process, in bytes. It does not use rusage, whose figure is
// inherited from the process that forked. It needs Linux.
func PeakRSS() (uint64, error) { return status("self", "VmHWM") }

// RSS returns the resident memory of a process, in bytes. It needs Linux.
func RSS(pid int) (uint64, error) { return status(strconv.Itoa(pid), "VmRSS") }

func status(process, field string) (uint64, error) {
	content, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0, fmt.Errorf("measure: %w", err)
	}
	for line := range bytes.Lines(content) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) != field {
			continue
		}
		kilobytes, err := strconv.ParseUint(string(bytes.TrimSuffix(bytes.TrimSpace(value), []byte(" kB"))), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("measure: %s of process %s: %w", field, process, err)
		}
		return kilobytes << 10, nil
	}
	return 0, fmt.Errorf("measure: process %s has no %s", process, field)
}

// Sockets returns the number of sockets that this process has open. It needs Linux.
func Sockets() (n int, err error) {
	const folder = "/proc/self/fd"
	files, err := os.ReadDir(folder)
	if err != nil {
		return 0, fmt.Errorf("measure: %w", err)
	}
	for _, f := range files {
		target, err := os.Readlink(filepath.Join(folder, f.Name()))
		if err == nil && strings.HasPrefix(target, "socket:") {
			n++
		} // otherwise the file is not open any more
	}
	return n, nil
}
