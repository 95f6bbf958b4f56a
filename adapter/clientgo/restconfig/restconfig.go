package restconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/leatproject/leat/apiclient"
)

// NewClient returns a client for the server of c, with the credentials of c. c is not changed and not kept.
func NewClient(c *rest.Config) (*apiclient.Client, error) {
	config, err := Config(c)
	if err != nil {
		return nil, err
	}
	return apiclient.New(config)
}

// Config returns the configuration of a client for the server of c, for callers that want to set further fields of it,
// such as OnRequest. A field of c that has no equivalent is an error that names it. APIPath, GroupVersion and
// NegotiatedSerializer are ignored, because leat's clients know the path and the type of their resource.
func Config(c *rest.Config) (apiclient.Config, error) {
	if c == nil {
		return apiclient.Config{}, errors.New("restconfig: the rest.Config is nil")
	}
	json, err := wantsJSON(c.ContentConfig)
	if err != nil {
		return apiclient.Config{}, err
	}
	server := *c
	server.GroupVersion, server.APIPath = nil, ""
	host, _, err := rest.DefaultServerUrlFor(&server)
	if err != nil {
		return apiclient.Config{}, fmt.Errorf("restconfig: Host: %w", err)
	}
	transport, err := rest.TransportFor(c)
	if err != nil {
		return apiclient.Config{}, fmt.Errorf("restconfig: %w", err)
	}
	return apiclient.Config{
		Host:                  host.String(),
		Transport:             transport,
		UserAgent:             cmp.Or(c.UserAgent, rest.DefaultKubernetesUserAgent()),
		DisableCompression:    c.DisableCompression,
		DisableProtobuf:       json,
		Limiter:               limiterOf(c),
		OnWarning:             warningsOf(c),
		ResponseHeaderTimeout: c.Timeout,
	}, nil
}

// wantsJSON reports whether a content configuration asks for JSON and not for protobuf.
func wantsJSON(c rest.ContentConfig) (bool, error) {
	accepted := c.ContentType
	if c.AcceptContentTypes != "" {
		accepted = c.AcceptContentTypes
	}
	json := false
	for part := range strings.SplitSeq(accepted, ",") {
		if strings.TrimSpace(part) == "" {
			continue
		}
		switch media, _, err := mime.ParseMediaType(part); {
		case err != nil:
			return false, fmt.Errorf("restconfig: ContentConfig: media type %q: %w", part, err)
		case media == runtime.ContentTypeProtobuf:
			return false, nil
		case media == runtime.ContentTypeJSON, media == "*/*":
			json = true
		}
	}
	if !json && accepted != "" {
		return false, fmt.Errorf("restconfig: ContentConfig asks for %q; leat has JSON and protobuf", accepted)
	}
	return json, nil
}

// limiterOf returns the rate limiter that client-go would use, or nil.
func limiterOf(c *rest.Config) apiclient.Limiter {
	qps := cmp.Or(c.QPS, rest.DefaultQPS)
	switch {
	case c.RateLimiter != nil:
		return c.RateLimiter
	case qps < 0:
		return nil
	default:
		return flowcontrol.NewTokenBucketRateLimiter(qps, cmp.Or(c.Burst, rest.DefaultBurst))
	}
}

// warningsOf returns a function that passes warnings to the handler of c. Without one they are logged by klog, which is
// the default of client-go.
func warningsOf(c *rest.Config) func(apiclient.Warning) {
	handle := rest.WarningLogger{}.HandleWarningHeaderWithContext
	switch {
	case c.WarningHandlerWithContext != nil:
		handle = c.WarningHandlerWithContext.HandleWarningHeaderWithContext
	case c.WarningHandler != nil:
		handle = func(_ context.Context, code int, agent, text string) {
			c.WarningHandler.HandleWarningHeader(code, agent, text)
		}
	}
	return func(w apiclient.Warning) { handle(context.Background(), w.Code, w.Agent, w.Text) }
}
