package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the user and system time of another process since its start, with that of threads that have ended. It is
// exact, except where the process has no clock that others can read: then it has steps of 10 ms. It needs Linux.
func CPU(pid int) (time.Duration, error) {
	if used, err := clock(pid); err == nil {
		return used, nil
	}
	return counted(pid)
}

// clock reads the processor time from the clock of a process; see clock_getcpuclockid(3).
func clock(pid int) (time.Duration, error) {
	const ofProcess = 2 // the clock that counts what the scheduler gave to all threads
	if pid <= 0 {       // the clock of the caller has the identifier 0
		return 0, unix.ESRCH
	}
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|ofProcess), &at); err != nil {
		return 0, err
	}
	return time.Duration(at.Nano()), nil
}

// ticks is the number of units in a second in which Linux reports processor time to programs, on every architecture.
const ticks = 100

// counted reads the processor time from the file system of processes. It is the same time, rounded down.
func counted(pid int) (time.Duration, error) {
	content, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("measure: %w", err)
	}
	// The name of the program may contain spaces. utime and stime are fields 14 and 15 of the line, and the name is 2.
	fields := bytes.Fields(content[bytes.LastIndexByte(content, ')')+1:])
	sum := int64(0)
	for _, at := range []int{14 - 3, 15 - 3} {
		if at >= len(fields) {
			return 0, fmt.Errorf("measure: /proc/%d/stat has %d fields after the name", pid, len(fields))
		}
		n, err := strconv.ParseInt(string(fields[at]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("measure: /proc/%d/stat: %w", pid, err)
		}
		sum += n
	}
	return time.Duration(sum) * (time.Second / ticks), nil
}
