//! Grouped fetches (109) are refused until they are served: the error says so.

use super::super::Request;
use crate::connection::Bound;
use iggy_metadata::Metadata;
use iggy_protocol::error_code::ErrorCode;

pub(super) fn serve(request: Request, _bound: Bound, _metadata: &Metadata) {
    request.refuse(ErrorCode::FeatureUnavailable);
}
