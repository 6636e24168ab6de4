// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

// The spenders that x402 has for payments by Permit2, written for these tests from the ABI and the types that its package
// for EVM publishes: it has no bytecode of them. What is shown with them is that Permit2 itself takes what the wallet
// signed, pays whom the witness names, and no more than was signed.

struct TokenPermissions {
    address token;
    uint256 amount;
}

struct PermitTransferFrom {
    TokenPermissions permitted;
    uint256 nonce;
    uint256 deadline;
}

struct SignatureTransferDetails {
    address to;
    uint256 requestedAmount;
}

interface Permit2 {
    function permitWitnessTransferFrom(
        PermitTransferFrom memory permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes32 witness,
        string calldata typeString,
        bytes calldata signature
    ) external;
}

abstract contract Proxy {
    Permit2 public constant PERMIT2 = Permit2(0x000000000022D473030F116dDEE9F6B43aC78BA3);

    event Settled();

    error AmountExceedsPermitted();
    error InvalidDestination();
    error PaymentTooEarly();
    error UnauthorizedFacilitator();

    function _take(
        PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        address to,
        uint256 validAfter,
        bytes32 witness,
        string memory typeString,
        bytes calldata signature
    ) internal {
        if (to == address(0)) revert InvalidDestination();
        if (block.timestamp < validAfter) revert PaymentTooEarly();
        PERMIT2.permitWitnessTransferFrom(
            permit, SignatureTransferDetails(to, amount), owner, witness, typeString, signature
        );
        emit Settled();
    }
}

contract ExactProxy is Proxy {
    struct Witness {
        address to;
        uint256 validAfter;
    }

    string public constant WITNESS_TYPE_STRING =
        "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,uint256 validAfter)";
    bytes32 public constant WITNESS_TYPEHASH = keccak256("Witness(address to,uint256 validAfter)");

    function settle(
        PermitTransferFrom calldata permit,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external {
        bytes32 hash = keccak256(abi.encode(WITNESS_TYPEHASH, witness.to, witness.validAfter));
        _take(
            permit, permit.permitted.amount, owner, witness.to, witness.validAfter, hash, WITNESS_TYPE_STRING, signature
        );
    }
}

contract UptoProxy is Proxy {
    struct Witness {
        address to;
        address facilitator;
        uint256 validAfter;
    }

    string public constant WITNESS_TYPE_STRING =
        "Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,address facilitator,uint256 validAfter)";
    bytes32 public constant WITNESS_TYPEHASH = keccak256("Witness(address to,address facilitator,uint256 validAfter)");

    function settle(
        PermitTransferFrom calldata permit,
        uint256 amount,
        address owner,
        Witness calldata witness,
        bytes calldata signature
    ) external {
        if (amount > permit.permitted.amount) revert AmountExceedsPermitted();
        if (msg.sender != witness.facilitator) revert UnauthorizedFacilitator();
        bytes32 hash =
            keccak256(abi.encode(WITNESS_TYPEHASH, witness.to, witness.facilitator, witness.validAfter));
        _take(permit, amount, owner, witness.to, witness.validAfter, hash, WITNESS_TYPE_STRING, signature);
    }
}
