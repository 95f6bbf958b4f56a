package clientgo

import (
	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// Logger returns a logger for the Logger options of leat that writes to l. Debug entries have verbosity 4, and all
// other entries except errors have verbosity 0. The error of an entry becomes the error of logr's Error. For the other
// direction, zapr.NewLogger of github.com/go-logr/zapr makes a logr.Logger of leat's logger.
func Logger(l logr.Logger) *zap.Logger { return zap.New(sink{l.WithCallDepth(3)}) }

// sink writes the entries of zap to a logr.Logger.
type sink struct{ log logr.Logger }

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
	pairs, err := pairsOf(fields)
	if err != nil {
		pairs = append(pairs, "err", err)
	}
	return sink{c.log.WithValues(pairs...)}
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
	pairs, err := pairsOf(fields)
	log := c.log
	if e.LoggerName != "" {
		log = log.WithName(e.LoggerName)
	}
	switch {
	case e.Level >= zapcore.ErrorLevel:
		log.Error(err, e.Message, pairs...)
	case err != nil:
		sink{log}.at(e.Level).Info(e.Message, append(pairs, "err", err)...)
	default:
		sink{log}.at(e.Level).Info(e.Message, pairs...)
	}
	return nil
}

// Sync does nothing.
func (c sink) Sync() error { return nil }

// pairsOf returns fields as keys and values, and the first error among them.
func pairsOf(fields []zapcore.Field) (pairs []any, err error) {
	encoded := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		if e, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType && err == nil {
			err = e
			continue
		}
		f.AddTo(encoded)
		if value, ok := encoded.Fields[f.Key]; ok {
			pairs = append(pairs, f.Key, value)
		}
	}
	return pairs, err
}
