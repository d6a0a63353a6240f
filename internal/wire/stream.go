package wire

import "strings"

// IsStream reports whether answers of this Content-Type are meant to be read
// while they go on, and may have no end that anybody could wait for (rule R9).
func IsStream(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	switch media = strings.ToLower(strings.TrimSpace(media)); media {
	case "text/event-stream", "multipart/x-mixed-replace", "application/grpc":
		return true
	}
	// gRPC names its encoding, or its way through browsers, in the type.
	return strings.HasPrefix(media, "application/grpc+") || strings.HasPrefix(media, "application/grpc-web")
}
