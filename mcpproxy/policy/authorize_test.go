package policy

import "context"

// Authorize checks a call, asks a user, and counts it, as whoever makes calls does.
func (r *Enforcer) Authorize(ctx context.Context, c Call, user ...func(*Ask) bool) error {
	ask, err := r.Check(ctx, c)
	if err != nil {
		return err
	}
	if ask != nil && (len(user) == 0 || !user[0](ask)) {
		return ask
	}
	_, err = r.Reserve(c)
	return err
}

// AuthorizeServer is Authorize for something of a server that is no tool.
func (r *Enforcer) AuthorizeServer(s Server) error {
	return r.Authorize(context.Background(), Call{Server: s})
}
