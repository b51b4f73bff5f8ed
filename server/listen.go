package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"
)

// firstBytesTime bounds the wait for a refused client to take its sentence.
const firstBytesTime = time.Second

// told wraps a listener so that a client that speaks TLS to a plaintext port, the reverse, or HTTP/1 is told so in one
// sentence where its protocol has room for one, and the log says so in any case.
func (s *Server) told(l net.Listener) net.Listener { return &toldListener{Listener: l, s: s} }

type toldListener struct {
	net.Listener
	s    *Server
	told time.Time // when the log last said that there are too many
}

// Accept implements net.Listener.
func (l *toldListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if n := l.s.open.Add(1); l.s.opt.Connections > 0 && n > int64(l.s.opt.Connections) {
			l.s.open.Add(-1)
			_ = c.Close()
			if now := time.Now(); now.Sub(l.told) > time.Second {
				l.told = now
				l.s.opt.Log.Warn("a connection is refused: there are as many as limits.connections.max allows", zap.Int("max", l.s.opt.Connections))
			}
			continue
		}
		return &toldConn{Conn: c, s: l.s}, nil
	}
}

// Close implements net.Conn.
func (c *toldConn) Close() error {
	c.closed.Do(func() { c.s.open.Add(-1) })
	return c.Conn.Close()
}

// toldConn looks at the first bytes that its peer sends. Reads come from one goroutine, as gRPC does them.
type toldConn struct {
	net.Conn
	s      *Server
	looked sync.Once
	closed sync.Once
	first  []byte
	err    error
}

var errWrongProtocol = errors.New("the peer speaks another protocol")

// Read implements net.Conn.
func (c *toldConn) Read(b []byte) (int, error) {
	c.looked.Do(c.look)
	if c.err != nil {
		return 0, c.err
	}
	if len(c.first) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}

// Write implements net.Conn. gRPC greets before it reads, which would hide the refusal from a TLS client.
func (c *toldConn) Write(b []byte) (int, error) {
	c.looked.Do(c.look)
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Write(b)
}

// The beginnings of a TLS handshake record and of an HTTP/2 connection (RFC 9113 section 3.4).
const (
	tlsHandshake = 0x16
	http2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

func (c *toldConn) look() {
	var head [8]byte
	n, err := io.ReadFull(c.Conn, head[:1])
	if err == nil && (head[0] >= 'A' && head[0] <= 'Z') {
		var more int
		more, err = io.ReadFull(c.Conn, head[1:4])
		n += more
	}
	c.first = head[:n]
	if err != nil {
		if n == 0 {
			c.err = err
		}
		return
	}
	secure := c.s.opt.TLS != nil
	switch text := string(c.first); {
	case head[0] == tlsHandshake && !secure:
		// A fatal alert: protocol_version. The sentence can only go to the log.
		c.refuse("a client speaks TLS to this plaintext port", func() { _, _ = c.Conn.Write([]byte{0x15, 3, 1, 0, 2, 2, 70}) })
	case text == http2Preface[:4] && secure:
		c.refuse("a client speaks plaintext to this TLS port", func() {
			answerCall(c.Conn, "UNAVAILABLE: this port speaks TLS: use grpc+tls://, or useEncryption=true with JDBC")
		})
	case isMethod(text):
		sentence := "This is a Flight SQL port. Connect with grpc://, or jdbc:arrow-flight-sql:// and useEncryption=false.\n"
		if secure {
			sentence = "This is a Flight SQL port with TLS. Connect with grpc+tls://, or jdbc:arrow-flight-sql://.\n"
		}
		c.refuse("a client speaks HTTP/1 to this Flight SQL port", func() {
			_, _ = fmt.Fprintf(c.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
				len(sentence), sentence)
		})
	}
}

func isMethod(head string) bool {
	switch head {
	case "GET ", "HEAD", "POST", "PUT ", "OPTI", "DELE", "PATC", "CONN", "TRAC":
		return true
	}
	return false
}

// HTTP/2 frames (RFC 9113 section 6) and the headers of a gRPC answer that is an error.
const (
	frameHead                                      = 9
	frameHeaders, frameSettings, frameGoAway       = 1, 4, 7
	flagEndStream, flagEndHeaders                  = 1, 4
	mostFrames, maxFrameBytes                      = 64, 16 << 10
	statusOK                                 uint8 = 0x88 // :status 200 in HPACK's static table
)

func frame(kind, flags byte, stream uint32, body []byte) []byte {
	b := []byte{byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body)), kind, flags}
	return append(binary.BigEndian.AppendUint32(b, stream), body...)
}

// answerCall reads frames until the client's first call and ends that with a gRPC status: this is what clients show to people.
func answerCall(c net.Conn, sentence string) {
	if _, err := c.Write(frame(frameSettings, 0, 0, nil)); err != nil {
		return
	}
	if _, err := io.CopyN(io.Discard, c, int64(len(http2Preface)-4)); err != nil {
		return
	}
	for range mostFrames {
		var head [frameHead]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return
		}
		n := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
		if n > maxFrameBytes {
			return
		}
		if _, err := io.CopyN(io.Discard, c, n); err != nil {
			return
		}
		if head[3] != frameHeaders {
			continue
		}
		stream := binary.BigEndian.Uint32(head[5:])
		block := []byte{statusOK}
		for _, h := range [][2]string{{"content-type", "application/grpc"}, {"grpc-status", strconv.Itoa(int(codes.Unavailable))}, {"grpc-message", sentence}} {
			block = append(append(append(block, 0, byte(len(h[0]))), h[0]...), byte(len(h[1])))
			block = append(block, h[1]...)
		}
		answer := frame(frameHeaders, flagEndStream|flagEndHeaders, stream, block)
		answer = append(answer, frame(frameGoAway, 0, 0, append(binary.BigEndian.AppendUint32(nil, stream), 0, 0, 0, 0))...)
		_, _ = c.Write(answer)
		return
	}
}

func (c *toldConn) refuse(why string, answer func()) {
	c.s.opt.Log.Warn(why, zap.String("peer", c.RemoteAddr().String()))
	_ = c.SetDeadline(time.Now().Add(firstBytesTime))
	answer()
	if t, ok := c.Conn.(*net.TCPConn); ok {
		// What the peer sends meanwhile is read, so that closing does not reset the connection before it has the answer.
		_ = t.CloseWrite()
		_, _ = io.Copy(io.Discard, io.LimitReader(c.Conn, 64<<10))
	}
	c.err = errWrongProtocol
}
