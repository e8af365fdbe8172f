package inbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/toolcell/toolcell/bridge/consent"
	"github.com/toolcell/toolcell/internal/contain"
	"golang.org/x/sys/unix"
)

// Bounds on what the clients of a socket may use.
const (
	maxConns   = 32
	maxRequest = 4 << 10          // bytes of a line
	idleTime   = 10 * time.Second // between requests
	typingTime = 15 * time.Minute // of the person who reads the question and types the code
	writeTime  = 10 * time.Second // of one reply
)

// A Server answers `toolcell approvals` for one process.
type Server struct {
	queue    *consent.Queue
	activity Activity
	log      *slog.Logger
	folder   folder
	name     string // of the socket
	listener *net.UnixListener
	own      serving // this server as it was when it began: its client may end, and it be adopted
	ownErr   error   // why that cannot be seen
	strict   func() bool
	slots    chan struct{}

	mu    sync.Mutex
	wrong map[string]int // codes that were typed, by the IDs of questions

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup
}

// Listen makes a socket in a folder and answers there what is asked about the
// questions of a queue, and about the activity of its process, until Close.
//
// strict reports whether approvals are refused that are not clearly a person's.
func Listen(dir string, queue *consent.Queue, a Activity, strict func() bool, log *slog.Logger) (*Server, error) {
	d, err := makeFolder(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the folder of approvals: %w", err)
	}
	d.sweep()
	l, name, err := d.listen()
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	s := &Server{queue: queue, activity: a, log: log, folder: d, name: name, listener: l, strict: strict, slots: make(chan struct{}, maxConns)}
	s.own, s.ownErr = servingOf(os.Getpid())
	s.own.own = true
	s.life, s.end = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

// Close ends all connections and removes the socket.
func (s *Server) Close() error {
	s.end()
	err := s.folder.remove(s.name)
	if errors.Is(err, unix.ENOENT) {
		err = nil // it was cleaned up meanwhile
	}
	err = errors.Join(err, s.listener.Close())
	s.work.Wait()
	return errors.Join(err, s.folder.close())
}

// acceptPause is how long accepting pauses if there are no descriptors left.
const acceptPause = 100 * time.Millisecond

func (s *Server) accept() {
	defer contain.Recover("listening for toolcell approvals", func(error) { _ = s.listener.Close() })
	for {
		c, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) || s.life.Err() != nil {
			if err == nil {
				_ = c.Close() // nothing was written
			}
			return
		}
		if err != nil {
			s.log.Warn("accepting a connection of toolcell approvals", "err", err)
			select {
			case <-time.After(acceptPause):
			case <-s.life.Done():
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
			s.work.Go(func() {
				defer func() { <-s.slots }()
				defer contain.Recover("answering toolcell approvals", nil) // the connection is closed, and nothing decided
				s.serve(c)
			})
		default:
			_ = c.Close() // nothing was written
		}
	}
}

// serve answers the requests of one connection.
func (s *Server) serve(conn *net.UnixConn) {
	defer conn.Close()
	defer context.AfterFunc(s.life, contain.Func("closing a connection", func() { conn.Close() }))()
	c := &serverConn{Server: s, conn: conn}
	peer, err := peerOf(conn)
	if err != nil {
		s.log.Warn("a process connected that is not known, for toolcell approvals", "err", err)
		return
	}
	if stat, err := readStat(int(peer.Pid)); err == nil {
		c.process = stat.process
	}
	if c.peer = peer; !mayConnect(peer) {
		s.log.Warn("another user's process was refused, for toolcell approvals", "uid", peer.Uid, "pid", peer.Pid)
	}
	lines := bufio.NewReaderSize(conn, maxRequest)
	for {
		wait := idleTime
		if c.challenge != nil {
			wait = typingTime
		}
		if conn.SetReadDeadline(time.Now().Add(wait)) != nil {
			return
		}
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return
		}
		if !mayConnect(peer) {
			_ = c.fail(errors.New("these are the questions of another user")) // it is refused, whether it reads or not
			return
		}
		if c.answer(line) != nil {
			return
		}
	}
}

// peerOf returns the process at the other end.
func peerOf(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *unix.Ucred
	var peerErr error
	err = raw.Control(func(fd uintptr) { peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(err, peerErr)
}

// mayConnect reports whether a process is of this user or of root.
func mayConnect(peer *unix.Ucred) bool { return peer.Uid == 0 || int(peer.Uid) == os.Geteuid() }
