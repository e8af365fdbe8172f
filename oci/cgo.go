package oci

import "C" // for pid1.c
