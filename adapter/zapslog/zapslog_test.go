package zapslog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/leatproject/leat/adapter/zapslog"
)

// TestLevels maps the levels.
func TestLevels(t *testing.T) {
	for from, want := range map[zapcore.Level]slog.Level{
		zapcore.DebugLevel: slog.LevelDebug, zapcore.InfoLevel: slog.LevelInfo, zapcore.WarnLevel: slog.LevelWarn, zapcore.ErrorLevel: slog.LevelError,
	} {
		require.Equal(t, want.String(), lineOf(t, slog.LevelDebug, func(l *zap.Logger) { l.Log(from, "a") })["level"])
	}
	require.Empty(t, lineOf(t, slog.LevelWarn, func(l *zap.Logger) { l.Info("a", zap.Stringer("b", stringer{t})) }))
}

// stringer must not be formatted.
type stringer struct{ t *testing.T }

func (s stringer) String() string {
	s.t.Error("a disabled entry was converted")
	return ""
}

// lineOf returns what a function logs through a core, or nothing.
func lineOf(t *testing.T, level slog.Level, log func(*zap.Logger)) map[string]any {
	t.Helper()
	var out bytes.Buffer
	log(zap.New(zapslog.NewCore(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))))
	var line map[string]any
	if out.Len() > 0 {
		require.NoError(t, json.Unmarshal(out.Bytes(), &line))
	}
	return line
}

// TestCore logs fields of several types, with namespaces.
func TestCore(t *testing.T) {
	line := lineOf(t, slog.LevelDebug, func(l *zap.Logger) {
		l.Named("mill").With(zap.String("a", "b"), zap.Namespace("g"), zap.Int("n", 1)).With(zap.Bool("c", true)).Error("no grain",
			zap.NamedError("err", errors.New("empty")), zap.Duration("took", time.Second), zap.Namespace("h"), zap.Strings("s", []string{"x"}),
			zap.Inline(zapcore.ObjectMarshalerFunc(func(e zapcore.ObjectEncoder) error {
				e.AddString("i", "j")
				return nil
			})))
	})
	require.NotEmpty(t, line["time"])
	delete(line, "time")
	require.Equal(t, map[string]any{
		"level": "ERROR", "msg": "no grain", "a": "b",
		"g": map[string]any{
			"logger": "mill", "n": 1.0, "c": true, "err": "empty", "took": 1e9,
			"h": map[string]any{"s": []any{"x"}, "i": "j"},
		},
	}, line)
	stack := lineOf(t, slog.LevelDebug, func(l *zap.Logger) { l.WithOptions(zap.AddStacktrace(zap.InfoLevel)).Info("a") })
	require.Contains(t, stack["stack"], "TestCore")
	require.Panics(t, func() { zapslog.NewCore(nil) })
}
