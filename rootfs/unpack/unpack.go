// Package unpack turns the layers of an image into the directory that is the
// root of a sandbox. Whatever an image says, nothing outside that directory
// changes, nothing in it is a device or has setuid, and no image takes more than
// its Budget. It verifies no digests of layers: the reader of a layer does.
//
// A layer is kept once, however many images have it, in a folder of its own:
//
//	entries      the entries of its tar, in order
//	files/N/N    the contents of its regular files, by number
//
// No name out of the tar is a name there, so nothing that an image says leads
// anywhere. Names come to life when the layers are merged into a root, which
// links the contents into their places (merge.go).
package unpack
