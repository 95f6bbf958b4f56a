package compare

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Area is a file of requests: a part of the API that is compared and counted.
type Area struct {
	Name      string
	About     string // the comment at the beginning of the file
	Scenarios []*Scenario
}

// Scenario is a sequence of steps in a namespace of its own. Later steps use what earlier ones created.
type Scenario struct {
	ID    string // "area/scenario"
	Steps []*Step
}

// Namespace returns the namespace of the scenario.
func (s *Scenario) Namespace() string { return strings.ReplaceAll(s.ID, "/", "-") }

// Step is one request, or one command of kubectl.
type Step struct {
	ID     string // "area/scenario/step"
	Name   string
	Method string
	Path   string
	Header http.Header
	Args   []string // of kubectl; then Method and Path are empty
	Body   string   // of the request, or the standard input of kubectl

	User      string // "admin", "restricted", "stranger" or "nobody"
	Until     int    // repeat the request until the answer has this status; 0 sends it once
	Contains  string // with Until: and until this text is in the answer
	Meanwhile bool   // read the answer while the next steps run
	Rest      bool   // repeat the request until the controllers of the server have nothing to do
	Protobuf  bool   // Body is JSON that is sent as protobuf
	Fill      int    // the number of letters that replace $fill
}

// ReadAreas reads the areas of a folder, in the order of names.
func ReadAreas(folder string, names []string) ([]*Area, error) {
	var areas []*Area
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(folder, name+".txt"))
		if err != nil {
			return nil, err
		}
		a, err := ParseArea(name, string(text))
		if err != nil {
			return nil, fmt.Errorf("compare: %s.txt: %w", name, err)
		}
		areas = append(areas, a)
	}
	return areas, nil
}

var validName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// ParseArea reads the requests of one area. README.md describes the format.
func ParseArea(name, text string) (*Area, error) {
	p := parser{area: &Area{Name: name}, lines: strings.Split(strings.TrimRight(text, "\n"), "\n")}
	for p.at < len(p.lines) {
		if err := p.block(); err != nil {
			return nil, fmt.Errorf("line %d: %w", p.at+1, err)
		}
	}
	return p.area, nil
}

type parser struct {
	area  *Area
	lines []string
	at    int
}

// next returns the current line and goes to the following one. more is false at the end and before the next block.
func (p *parser) next() (line string, more bool) {
	if p.at == len(p.lines) || startsBlock(p.lines[p.at]) {
		return "", false
	}
	p.at++
	return p.lines[p.at-1], true
}

func startsBlock(line string) bool {
	return strings.HasPrefix(line, "== ") || strings.HasPrefix(line, "-- ")
}

// block reads what the current line begins: the comment of the file, a scenario or a step.
func (p *parser) block() error {
	line := p.lines[p.at]
	title, isScenario := strings.CutPrefix(line, "== ")
	if isScenario {
		p.at++
		return p.scenario(title)
	}
	title, isStep := strings.CutPrefix(line, "-- ")
	if isStep {
		p.at++
		return p.step(title)
	}
	var about []string
	for line, more := p.next(); more; line, more = p.next() {
		words, comment := strings.CutPrefix(line, "#")
		if !comment && line != "" {
			return errors.New("a request needs a scenario (==) and a name (--)")
		}
		about = append(about, strings.TrimSpace(words))
	}
	p.area.About = strings.TrimSpace(strings.Join(about, " "))
	return nil
}

func (p *parser) scenario(name string) error {
	s := &Scenario{ID: p.area.Name + "/" + name}
	if !validName.MatchString(name) || len(s.Namespace()) > 50 {
		return fmt.Errorf("%q is not a name for a scenario: small letters, digits and hyphens, at most 50 with the area", name)
	}
	if slices.ContainsFunc(p.area.Scenarios, func(other *Scenario) bool { return other.ID == s.ID }) {
		return fmt.Errorf("there are two scenarios %s", s.ID)
	}
	p.area.Scenarios = append(p.area.Scenarios, s)
	return p.comments()
}

// comments skips comments and empty lines.
func (p *parser) comments() error {
	for p.at < len(p.lines) && !startsBlock(p.lines[p.at]) {
		if line := p.lines[p.at]; line != "" && !strings.HasPrefix(line, "#") {
			return errors.New("a request needs a name (--)")
		}
		p.at++
	}
	return nil
}

func (p *parser) step(name string) error {
	if len(p.area.Scenarios) == 0 {
		return fmt.Errorf("step %q is before the first scenario", name)
	}
	scenario := p.area.Scenarios[len(p.area.Scenarios)-1]
	s := &Step{ID: scenario.ID + "/" + name, Name: name, Header: http.Header{}, User: "admin"}
	if !validName.MatchString(name) {
		return fmt.Errorf("%q is not a name for a step: small letters, digits and hyphens", name)
	}
	if slices.ContainsFunc(scenario.Steps, func(other *Step) bool { return other.ID == s.ID }) {
		return fmt.Errorf("there are two steps %s", s.ID)
	}
	scenario.Steps = append(scenario.Steps, s)
	if err := p.request(s); err != nil {
		return fmt.Errorf("%s: %w", s.ID, err)
	}
	return nil
}

// request reads directives, the line of the request, its headers and its body.
func (p *parser) request(s *Step) error {
	for line, more := p.next(); more; line, more = p.next() {
		directive, isDirective := strings.CutPrefix(line, "@")
		command, isCommand := strings.CutPrefix(line, "$ kubectl ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case isDirective:
			if err := s.direct(directive); err != nil {
				return err
			}
		case isCommand:
			args, err := splitArgs(command)
			s.Args = args
			s.Body = p.body()
			return err
		default:
			method, path, ok := strings.Cut(line, " ")
			if !ok || !strings.HasPrefix(path, "/") {
				return fmt.Errorf("%q is not METHOD /path", line)
			}
			s.Method, s.Path = method, path
			return p.headers(s)
		}
	}
	return errors.New("there is no request")
}

// direct applies the directives of a step, such as "user restricted".
func (s *Step) direct(text string) error {
	name, value, _ := strings.Cut(text, " ")
	var err error
	switch name {
	case "user":
		s.User = value
		if tokens[value] == "" && value != "nobody" {
			err = fmt.Errorf("there is no user %q", value)
		}
	case "until":
		status, text, _ := strings.Cut(value, " ")
		s.Until, err = strconv.Atoi(status)
		s.Contains = text
	case "fill":
		s.Fill, err = strconv.Atoi(value)
	case "meanwhile":
		s.Meanwhile = true
	case "protobuf":
		s.Protobuf = true
	case "rest":
		s.Rest = true
	default:
		err = fmt.Errorf("unknown directive @%s", name)
	}
	return err
}

func (p *parser) headers(s *Step) error {
	for line, more := p.next(); more; line, more = p.next() {
		if line == "" {
			s.Body = p.body()
			return nil
		}
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return fmt.Errorf("%q is not a header; a body follows an empty line", line)
		}
		s.Header.Add(name, value)
	}
	return nil
}

// body returns the lines up to the next block, without empty lines at the end.
func (p *parser) body() string {
	var lines []string
	for line, more := p.next(); more; line, more = p.next() {
		lines = append(lines, line)
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// splitArgs splits a command line at spaces. Single and double quotes keep spaces.
func splitArgs(line string) ([]string, error) {
	var args []string
	var word strings.Builder
	var quote rune
	inWord := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ':
			if inWord {
				args = append(args, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quotes in %q do not end", line)
	}
	if inWord {
		args = append(args, word.String())
	}
	return args, nil
}
