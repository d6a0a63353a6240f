package wire

import "testing"

// TestR9_WhatIsAStream: by the media type alone, in any case and with any
// parameters; what only begins like one is none.
func TestR9_WhatIsAStream(t *testing.T) {
	for contentType, want := range map[string]bool{
		"text/event-stream":                        true,
		"Text/Event-Stream; charset=utf-8":         true,
		"multipart/x-mixed-replace;boundary=frame": true,
		"application/grpc":                         true,
		"application/grpc+proto":                   true,
		"application/grpc-web-text+proto":          true,
		"application/grpcish":                      false,
		"multipart/mixed":                          false,
		"application/json":                         false,
		"":                                         false,
	} {
		if got := IsStream(contentType); got != want {
			t.Errorf("IsStream(%q) is %v", contentType, got)
		}
	}
}
