package zapslog

import (
	"context"
	"log/slog"
	"runtime"
	"slices"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewHandler returns a handler that logs to a core of zap. Levels below debug become debug, and those above error
// become error, because zap ends the process or panics after higher levels.
func NewHandler(c zapcore.Core) slog.Handler {
	if c == nil {
		panic("zapslog: NewHandler needs a core")
	}
	return &handler{core: c}
}

type handler struct {
	core zapcore.Core
	// groups are open and have no attribute yet. A group without attributes is not logged.
	groups []string
}

// Enabled reports whether the core logs a level.
func (h *handler) Enabled(_ context.Context, l slog.Level) bool { return h.core.Enabled(toZap(l)) }

// Handle passes a record to the core.
func (h *handler) Handle(_ context.Context, r slog.Record) error {
	e := zapcore.Entry{Level: toZap(r.Level), Time: r.Time, Message: r.Message}
	if r.PC != 0 {
		frame, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
		e.Caller = zapcore.NewEntryCaller(r.PC, frame.File, frame.Line, true)
		e.Caller.Function = frame.Function
	}
	checked := h.core.Check(e, nil)
	if checked == nil {
		return nil
	}
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	checked.Write(h.fields(attrs)...)
	return nil
}

// WithAttrs adds attributes to all later records.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	fields := h.fields(attrs)
	if len(fields) == 0 {
		return h
	}
	return &handler{core: h.core.With(fields)}
}

// WithGroup opens a group for later attributes.
func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &handler{core: h.core, groups: append(slices.Clip(h.groups), name)}
}

// fields converts attributes, below the open groups. Without attributes it returns none.
func (h *handler) fields(attrs []slog.Attr) []zapcore.Field {
	own := fields(attrs)
	if len(own) == 0 {
		return nil
	}
	var all []zapcore.Field
	for _, name := range h.groups {
		all = append(all, zap.Namespace(name))
	}
	return append(all, own...)
}

func fields(attrs []slog.Attr) (all []zapcore.Field) {
	for _, a := range attrs {
		a.Value = a.Value.Resolve()
		if a.Equal(slog.Attr{}) {
			continue
		}
		switch v := a.Value; v.Kind() {
		case slog.KindGroup:
			members := fields(v.Group())
			switch {
			case len(members) == 0:
			case a.Key == "":
				all = append(all, members...)
			default:
				all = append(all, zap.Dict(a.Key, members...))
			}
		default:
			all = append(all, zap.Any(a.Key, v.Any()))
		}
	}
	return all
}

// toZap returns the level of zap.
func toZap(l slog.Level) zapcore.Level {
	switch {
	case l < slog.LevelInfo:
		return zapcore.DebugLevel
	case l < slog.LevelWarn:
		return zapcore.InfoLevel
	case l < slog.LevelError:
		return zapcore.WarnLevel
	}
	return zapcore.ErrorLevel
}
