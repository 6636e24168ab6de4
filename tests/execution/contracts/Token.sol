// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {ERC20Burnable} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Burnable.sol";
import {ERC20Permit} from "@openzeppelin/contracts/token/ERC20/extensions/ERC20Permit.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {Multicall} from "@openzeppelin/contracts/utils/Multicall.sol";

/// OpenZeppelin's ERC-20 and nothing else.
contract PlainToken is ERC20 {
    constructor() ERC20("Plain", "PLN") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}

/// A token with every way out that tokens in use have: permits of three kinds, multicall, burning, calls with transfers.
contract Token is ERC20, ERC20Burnable, ERC20Permit, Multicall {
    bytes32 private constant TRANSFER =
        keccak256(
            "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
        );
    bytes32 private constant RECEIVE =
        keccak256(
            "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
        );
    bytes32 private constant DAI_PERMIT =
        keccak256("Permit(address holder,address spender,uint256 nonce,uint256 expiry,bool allowed)");

    mapping(address => mapping(bytes32 => bool)) public used;

    constructor() ERC20("Token", "TKN") ERC20Permit("Token") {}

    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }

    function increaseAllowance(address spender, uint256 added) external returns (bool) {
        _approve(msg.sender, spender, allowance(msg.sender, spender) + added);
        return true;
    }

    function decreaseAllowance(address spender, uint256 taken) external returns (bool) {
        _approve(msg.sender, spender, allowance(msg.sender, spender) - taken);
        return true;
    }

    function multicall(uint256 deadline, bytes[] calldata data) external returns (bytes[] memory) {
        require(block.timestamp <= deadline, "late");
        return _each(data);
    }

    /// As of ERC-677 and ERC-1363.
    function transferAndCall(address to, uint256 amount, bytes calldata) external returns (bool) {
        return transfer(to, amount);
    }

    /// As of ERC-777.
    function send(address to, uint256 amount, bytes calldata) external {
        transfer(to, amount);
    }

    function permit(
        address holder,
        address spender,
        uint256 nonce,
        uint256 expiry,
        bool allowed,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        require(expiry == 0 || block.timestamp <= expiry, "late");
        require(_useNonce(holder) == nonce, "nonce");
        _signed(holder, keccak256(abi.encode(DAI_PERMIT, holder, spender, nonce, expiry, allowed)), v, r, s);
        _approve(holder, spender, allowed ? type(uint256).max : 0);
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        bytes32 what = keccak256(abi.encode(TRANSFER, from, to, value, validAfter, validBefore, nonce));
        _authorized(from, validAfter, validBefore, nonce);
        _signed(from, what, v, r, s);
        _transfer(from, to, value);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        require(to == msg.sender, "caller");
        bytes32 what = keccak256(abi.encode(RECEIVE, from, to, value, validAfter, validBefore, nonce));
        _authorized(from, validAfter, validBefore, nonce);
        _signed(from, what, v, r, s);
        _transfer(from, to, value);
    }

    function _authorized(address from, uint256 validAfter, uint256 validBefore, bytes32 nonce) private {
        require(block.timestamp > validAfter && block.timestamp < validBefore && !used[from][nonce], "time");
        used[from][nonce] = true;
    }

    function _signed(address who, bytes32 what, uint8 v, bytes32 r, bytes32 s) private view {
        require(ECDSA.recover(_hashTypedDataV4(what), v, r, s) == who, "signature");
    }

    function _each(bytes[] calldata data) private returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i = 0; i < data.length; i++) {
            (bool ok, bytes memory result) = address(this).delegatecall(data[i]);
            require(ok, "inner");
            results[i] = result;
        }
    }
}
