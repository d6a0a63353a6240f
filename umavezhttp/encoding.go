package umavezhttp

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
)

// decoder decodes compressed bodies, so that what was compressed counts and not
// how (rule F7). The handler still gets what was sent. It is reused, since the
// tables of a decompressor take tens of kilobytes.
type decoder struct {
	src  bytes.Reader
	gzip gzip.Reader
	zlib io.Reader // a zlib.Resetter; nil before the first use
	out  []byte
}

// decode returns the content of a body in a coding that it knows, when it is
// whole and no larger than limit, in bytes. What it returns is good until the
// next call.
func (d *decoder) decode(coding string, body []byte, limit int64) ([]byte, bool) {
	d.src.Reset(body)
	defer d.src.Reset(nil)
	var from io.Reader
	switch coding {
	case "gzip", "x-gzip":
		if d.gzip.Reset(&d.src) != nil {
			return nil, false
		}
		from = &d.gzip
	case "deflate":
		// The zlib format, as RFC 9110, 8.4.1.2 has it. Clients that send bare
		// deflate instead are compared by the bytes they sent.
		if err := d.resetZlib(); err != nil {
			return nil, false
		}
		from = d.zlib
	default:
		return nil, false
	}
	// Bytes behind the end would be seen by some decoders and not by others.
	if !d.read(from, limit) || d.src.Len() > 0 {
		return nil, false
	}
	return d.out, true
}

func (d *decoder) resetZlib() (err error) {
	if resetter, ok := d.zlib.(zlib.Resetter); ok {
		return resetter.Reset(&d.src, nil)
	}
	d.zlib, err = zlib.NewReader(&d.src)
	return err
}

// read reads to the end, which is also where a decompressor checks its sums. A
// bomb costs no more than limit.
func (d *decoder) read(from io.Reader, limit int64) bool {
	d.out = d.out[:0]
	for {
		if len(d.out) == cap(d.out) {
			d.out = append(d.out, make([]byte, max(len(d.out), 1024))...)[:len(d.out)]
		}
		n, err := from.Read(d.out[len(d.out):cap(d.out)])
		d.out = d.out[:len(d.out)+n]
		switch {
		case int64(len(d.out)) > limit:
			return false
		case err == io.EOF:
			return true
		case err != nil:
			return false
		}
	}
}

// forget drops what was decoded when it is large.
func (d *decoder) forget() {
	if cap(d.out) > mostPooled {
		d.out = nil
	}
}
