package zapslog

import (
	"context"
	"log/slog"
	"slices"

	"go.uber.org/zap/zapcore"
)

// NewCore returns a core that logs to a handler of slog. The name of a logger becomes the attribute "logger", and a
// stack trace the attribute "stack". Levels above error stay above it.
func NewCore(h slog.Handler) zapcore.Core {
	if h == nil {
		panic("zapslog: NewCore needs a handler")
	}
	return core{h}
}

type core struct{ h slog.Handler }

// Enabled reports whether the handler logs a level.
func (c core) Enabled(l zapcore.Level) bool { return c.h.Enabled(context.Background(), fromZap(l)) }

// With adds fields to all later entries. A field of zap.Namespace opens a group.
func (c core) With(fields []zapcore.Field) zapcore.Core {
	for len(fields) > 0 {
		n := slices.IndexFunc(fields, isNamespace)
		if n < 0 {
			return core{c.h.WithAttrs(attributes(fields))}
		}
		if n > 0 {
			c.h = c.h.WithAttrs(attributes(fields[:n]))
		}
		c.h, fields = c.h.WithGroup(fields[n].Key), fields[n+1:]
	}
	return c
}

// Check adds the core to an entry that the handler logs.
func (c core) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !c.Enabled(e.Level) {
		return checked
	}
	return checked.AddCore(e, c)
}

// Write passes an entry to the handler.
func (c core) Write(e zapcore.Entry, fields []zapcore.Field) error {
	r := slog.NewRecord(e.Time, fromZap(e.Level), e.Message, e.Caller.PC)
	if e.LoggerName != "" {
		r.AddAttrs(slog.String("logger", e.LoggerName))
	}
	if e.Stack != "" {
		r.AddAttrs(slog.String("stack", e.Stack))
	}
	r.AddAttrs(attributes(fields)...)
	return c.h.Handle(context.Background(), r)
}

// Sync does nothing, because a handler has no buffer that it could write.
func (core) Sync() error { return nil }

// fromZap returns the level of slog. Both have four steps from debug to error.
func fromZap(l zapcore.Level) slog.Level { return 4 * slog.Level(l) }

func isNamespace(f zapcore.Field) bool { return f.Type == zapcore.NamespaceType }

// attributes converts fields. Those after a namespace are in a group.
func attributes(fields []zapcore.Field) []slog.Attr {
	all := make([]slog.Attr, 0, len(fields))
	for i, f := range fields {
		switch f.Type {
		case zapcore.NamespaceType:
			return append(all, slog.Attr{Key: f.Key, Value: slog.GroupValue(attributes(fields[i+1:])...)})
		case zapcore.ErrorType:
			all = append(all, slog.Any(f.Key, f.Interface))
		default:
			all = append(all, converted(f)...)
		}
	}
	return all
}

// converted returns what a field adds to an entry: mostly one attribute, but several for zap.Inline.
func converted(f zapcore.Field) (all []slog.Attr) {
	values := zapcore.NewMapObjectEncoder()
	f.AddTo(values)
	for key, value := range values.Fields {
		all = append(all, slog.Any(key, value))
	}
	return all
}
