package pid1

import "C" // for pid1.c
