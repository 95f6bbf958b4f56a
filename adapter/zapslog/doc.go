// Package zapslog connects zap, which leat logs with, to log/slog. A program that logs with logr needs one
// step more, because logr converts to slog itself. The other direction is NewHandler of go.uber.org/zap/exp/zapslog.
//
// # Example
//
//	p, err := program.New(program.Options{Name: "mill", Logger: zap.New(zapslog.NewCore(slog.Default().Handler()))})
//	log := zap.New(zapslog.NewCore(logr.ToSlogHandler(l))) // leat logs to a logr.Logger
//
// See ExampleNewCore.
//
// # Promises
//
//  1. Each entry arrives once, with its time, level, message and fields, and with groups as nested objects.
//  2. A level that is disabled at the target costs no conversion.
//
// # Concurrency
//
// A core is as safe for concurrent use as its handler.
//
// # Differences from client-go
//
// client-go logs with klog.
package zapslog
