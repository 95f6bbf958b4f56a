package warmstart

import (
	"os"
	"strings"
)

// bootID returns a text that differs at each start of the machine, or "" if the system has none.
func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
