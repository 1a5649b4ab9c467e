/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Includes the headers of all modules of this folder except access, counters,
 * event, explain, key, semantics and share.  A file that uses few modules
 * includes their headers instead.
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
