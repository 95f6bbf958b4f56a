// Package zapslog connects zap, which leat logs with, and log/slog, in both directions. A program whose logger is that
// of logr needs one step more, because logr converts from and to slog itself.
//
// # Example
//
//	p, err := program.New(program.Options{Name: "mill", Logger: zap.New(zapslog.NewCore(slog.Default().Handler()))})
//	log := slog.New(zapslog.NewHandler(p.Logger.Core()))
//
//	zap.New(zapslog.NewCore(logr.ToSlogHandler(l)))         // leat logs to a logr.Logger
//	logr.FromSlogHandler(zapslog.NewHandler(p.Logger.Core())) // a logr.Logger that logs to zap
//
// See ExampleNewCore and ExampleNewHandler.
//
// # Promises
//
//  1. Each entry arrives once, with its time, level, message and fields, and with groups as nested objects.
//  2. A level that is disabled at the target costs no conversion.
//  3. The handler passes the tests of testing/slogtest.
//
// # Concurrency
//
// All values are as safe for concurrent use as the target, which every Handler and every Core has to be.
//
// # Differences from client-go
//
// client-go logs with klog. go.uber.org/zap/exp/zapslog has a Handler, in another module, and no Core.
package zapslog
