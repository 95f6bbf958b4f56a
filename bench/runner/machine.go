package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// Machine describes the machine and the versions of a run.
type Machine struct {
	CPU      string
	Cores    int
	Memory   string
	Kernel   string
	Go       string
	Versions map[string]string // of modules
	Commit   string
	Load     string `json:",omitempty"` // average of the minute before the run: the load by other programs
}

func thisMachine(folder string) Machine {
	m := Machine{Cores: runtime.NumCPU(), Go: runtime.Version(), Versions: map[string]string{}}
	m.CPU = firstMatch("/proc/cpuinfo", `(?m)^model name\s*:\s*(.*)$`)
	m.Memory = firstMatch("/proc/meminfo", `(?m)^MemTotal:\s*(.*)$`)
	m.Load = firstMatch("/proc/loadavg", `^(\S+)`)
	m.Kernel = runtime.GOOS + "/" + runtime.GOARCH + " " + firstMatch("/proc/sys/kernel/osrelease", `(\d+\.\d+)`)
	for _, module := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "k8s.io/apimachinery"} {
		m.Versions[module] = firstMatch(filepath.Join(folder, "go.mod"), `(?m)^\s*`+regexp.QuoteMeta(module)+` (\S+)`)
	}
	cmd := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=10")
	cmd.Dir = folder
	if commit, err := cmd.Output(); err == nil {
		m.Commit = strings.TrimSpace(string(commit))
	}
	return m
}

// firstMatch returns the first match of a pattern in a file, or "" without the file.
func firstMatch(name, pattern string) string {
	content, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	match := regexp.MustCompile(pattern).FindSubmatch(content)
	if match == nil {
		return ""
	}
	return strings.TrimSpace(string(match[1]))
}
