/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All modules of this folder but access, share and explain.  A file that uses
 * few of them includes those.
 */
#ifndef HCA_HCA_H
#define HCA_HCA_H

#include "hca/adapter.h"
#include "hca/arena.h"
#include "hca/comp.h"
#include "hca/cq.h"
#include "hca/eager.h"
#include "hca/mr.h"
#include "hca/mw.h"
#include "hca/notify.h"
#include "hca/peer_area.h"
#include "hca/peer_death.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "hca/space.h"
#include "hca/srq.h"
#include "hca/types.h"
#include "hca/wq.h"

#endif
