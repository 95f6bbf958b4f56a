package clientgo

import (
	"maps"
	"slices"

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger returns a logger for the Logger options of leat that writes to l. Debug entries have verbosity 4, and all
// other entries except errors have verbosity 0. The error of an entry becomes the error of logr's Error. In the other
// direction, logr.FromSlogHandler(zapslog.NewHandler(log.Core())) is a logr.Logger that writes to a logger of leat.
//
// The keys of an inlined object stand beside the others, and the keys after a zap.Namespace begin with its name and a
// dot.
func Logger(l logr.Logger) *zap.Logger { return zap.New(sink{log: l.WithCallDepth(3)}) }

// sink writes the entries of zap to a logr.Logger.
type sink struct {
	log    logr.Logger
	prefix string // of the keys, if a namespace is open
}

const debugVerbosity = 4

func (c sink) at(level zapcore.Level) logr.Logger {
	if level < zapcore.InfoLevel {
		return c.log.V(debugVerbosity)
	}
	return c.log
}

// Enabled reports whether entries of a level are written.
func (c sink) Enabled(level zapcore.Level) bool {
	return level >= zapcore.ErrorLevel || c.at(level).Enabled()
}

// With returns a core that adds fields to each entry.
func (c sink) With(fields []zapcore.Field) zapcore.Core {
	pairs, prefix, err := pairsOf(c.prefix, fields)
	if err != nil {
		pairs = append(pairs, c.prefix+"err", err)
	}
	return sink{c.log.WithValues(pairs...), prefix}
}

// Check adds the core to an entry that is to be written.
func (c sink) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

// Write writes an entry.
func (c sink) Write(e zapcore.Entry, fields []zapcore.Field) error {
	pairs, _, err := pairsOf(c.prefix, fields)
	log := c.log
	if e.LoggerName != "" {
		log = log.WithName(e.LoggerName)
	}
	switch {
	case e.Level >= zapcore.ErrorLevel:
		log.Error(err, e.Message, pairs...)
	case err != nil:
		sink{log: log}.at(e.Level).Info(e.Message, append(pairs, c.prefix+"err", err)...)
	default:
		sink{log: log}.at(e.Level).Info(e.Message, pairs...)
	}
	return nil
}

// Sync does nothing.
func (c sink) Sync() error { return nil }

// pairsOf returns fields as keys and values, the prefix of later keys, and the first error among the fields.
func pairsOf(prefix string, fields []zapcore.Field) (pairs []any, later string, err error) {
	for _, f := range fields {
		if e, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType && err == nil {
			err = e
			continue
		}
		if f.Type == zapcore.NamespaceType {
			prefix += f.Key + "."
			continue
		}
		encoded := zapcore.NewMapObjectEncoder() // of one field, because an inlined object has any number of keys
		f.AddTo(encoded)
		for _, key := range slices.Sorted(maps.Keys(encoded.Fields)) {
			pairs = append(pairs, prefix+key, encoded.Fields[key])
		}
	}
	return pairs, prefix, err
}
