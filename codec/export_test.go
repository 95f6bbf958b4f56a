package codec

import (
	jsonx "github.com/go-json-experiment/json"
)

// UnmarshalJSON decodes with the options of the package, into anything.
func UnmarshalJSON(b []byte, v any) error { return jsonx.Unmarshal(b, v, jsonOptions) }
