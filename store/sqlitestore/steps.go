package sqlitestore

import (
	"encoding/binary"
	"errors"

	"github.com/umavez/umavez"
)

// Steps are kept in one blob: for each, the length of its name, the name, the
// length of its result, the result. Lengths are unsigned varints.

func encodeSteps(steps []umavez.KeptStep) []byte {
	var b []byte
	for _, s := range steps {
		b = binary.AppendUvarint(b, uint64(len(s.Name)))
		b = append(b, s.Name...)
		b = binary.AppendUvarint(b, uint64(len(s.Result)))
		b = append(b, s.Result...)
	}
	return b
}

func decodeSteps(b []byte) ([]umavez.KeptStep, error) {
	var steps []umavez.KeptStep
	for len(b) > 0 {
		var name, result []byte
		var ok bool
		if name, b, ok = cutPart(b); ok {
			result, b, ok = cutPart(b)
		}
		if !ok {
			return nil, errors.New("its steps break off")
		}
		steps = append(steps, umavez.KeptStep{Name: string(name), Result: result})
	}
	return steps, nil
}

// cutPart cuts a length and as many bytes off the front of b.
func cutPart(b []byte) (part, rest []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, nil, false
	}
	b = b[size:]
	return b[:n:n], b[n:], true
}
